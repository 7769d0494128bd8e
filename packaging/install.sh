#!/bin/sh
# Installs poolcast @VERSION@ for one user of x86-64 Linux, without root:
#
#   sh install.sh [--prefix FOLDER] [--from ADDRESS]
#
#   --prefix FOLDER   where bin and share are; the default is ~/.local
#   --from ADDRESS    the address of the folder with the archive, or a folder of this machine
#
# The archive is unpacked only if it has the SHA-256 digest below, which ci/build/packages has written here.
set -eu

archive=@ARCHIVE@
digest=@DIGEST@
downloads=@DOWNLOADS@

fail() {
    echo "error: $1" >&2
    echo "hint: $2" >&2
    exit 1
}

fetch() { # FROM FILE: copies the archive from an address or a folder to the file
    case $1 in
        http://* | https://*)
            if command -v curl >/dev/null; then
                curl --fail --silent --show-error --location --output "$2" "$1/$archive"
            elif command -v wget >/dev/null; then
                wget -q -O "$2" "$1/$archive"
            else
                fail "neither curl nor wget is here" "load $1/$archive, and name its folder: sh install.sh --from FOLDER"
            fi ;;
        *) cp "$1/$archive" "$2" ;;
    esac
}

place() { # FILE TARGET: replaces the target by a copy of the file at once, also while the program runs
    mkdir -p "$(dirname "$2")"
    cp "$1" "$2.new"
    mv -f "$2.new" "$2"
}

install_archive() { # ARCHIVE PREFIX
    tar -xzof "$1" -C "$scratch"
    unpacked=$scratch/${archive%.tar.gz}
    (cd "$unpacked" && find bin share -type f) >"$scratch/files"
    while read -r file; do
        place "$unpacked/$file" "$2/$file"
    done <"$scratch/files"
}

# The last line calls this function, so that a part of this script does nothing.
main() {
    prefix=${HOME:+$HOME/.local}
    while [ $# -gt 0 ]; do
        case $1=${2:+value} in
            --prefix=value) prefix=$2 ;;
            --from=value) downloads=${2%/} ;;
            *) fail "\`$1\` is not understood" "sh install.sh [--prefix FOLDER] [--from ADDRESS]" ;;
        esac
        shift 2
    done
    [ "$(uname -s) $(uname -m)" = "Linux x86_64" ] ||
        fail "the program is for x86-64 Linux, and this is $(uname -s) $(uname -m)" "build it from its sources, with Rust: cargo install --path ."
    [ -n "$prefix" ] || fail "HOME is not set" "sh install.sh --prefix FOLDER"
    [ -n "$downloads" ] ||
        fail "this script does not know where $archive is" \
            "sh install.sh --from ADDRESS; its publisher fills in downloads in Cargo.toml"

    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM
    fetch "$downloads" "$scratch/$archive" || fail "there is no $downloads/$archive" "name another address: sh install.sh --from ADDRESS"
    found=$(sha256sum <"$scratch/$archive")
    [ "${found%% *}" = "$digest" ] ||
        fail "$downloads/$archive has the SHA-256 digest ${found%% *}, not $digest: nothing was installed" \
            "take the script and the archive of the same version from the same place"
    install_archive "$scratch/$archive" "$prefix"

    "$prefix/bin/poolcast" --version
    echo "installed: $prefix/bin/poolcast"
    case :$PATH: in
        *:"$prefix/bin":*) ;;
        *) echo "add it to the PATH of this shell: PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
}

main "$@"
