#!/bin/sh
# Scripts that DAGMan runs on the access point before and after the jobs of a DAG, in the DAG's directory.
# A sweep must not fail with one of its jobs. DAGMan's own features for this, WEAK PARENT and TOLERANCE, need HTCondor 25.13
# and 25.14; scripts work in every version. A final failure leaves a record, a file with the reason. Its node succeeds, and
# DAGMan skips the nodes that depend on it. A failure outside of a trial, such as a rejected submission, stays a failure.
set -u
export LC_ALL=C
skip=10 # PRE_SKIP

# Moves the results of a part's job into the sweep: its rows, and the completed trials.
gather() {
    part=$1
    if [ -e "$part/rows.jsonl" ]; then
        to=rows/${part##*/}.jsonl
        cp "$part/rows.jsonl" "$to.new" && mv "$to.new" "$to" || return 1
    fi
    [ -d "$part/trials" ] || return 0
    find "$part/trials" -type d -name 'trial-*' -prune | while IFS= read -r trial; do
        to=trials/${trial#"$part/trials/"}
        mkdir -p "${to%/*}" && rm -rf "$to" && mv "$trial" "$to" || exit 1
    done
}

# Packs the directory $1 into the directory in condor/shared_inputs, from which jobs fetch it; appends an error to the file $2.
# The archive is deterministic, so a repeated call is harmless, and caches, which never check a name twice, stay valid. log-files.json
# is not: it names the files that were read.
share() {
    shared=$(cat condor/shared_inputs) || return 1
    archive=$shared/$(printf %s "$1" | tr / -).tar
    said=$({
        mkdir -p "$shared" &&
            tar --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=u=rwX,go=rX \
                --exclude=log-files.json -cf "$archive.new" -- "$1"
    } 2>&1) || {
        rm -f "$archive.new"
        printf 'error: cannot share %s: %s\n' "$1" "$(printf %s "$said" | head -n 1)" >>"$2"
        return 1
    }
    if [ ! -e "$archive" ]; then
        mv "$archive.new" "$archive"
    elif cmp -s "$archive.new" "$archive"; then
        rm "$archive.new"
    else
        rm "$archive.new"
        printf 'error: cannot share %s: %s has other files, and caches keep them: make the DAG in another directory\n' \
            "$1" "$archive" >>"$2"
        return 1
    fi
}

# NAME ENTRY...: moves the results to a directory with the sweep's name. DAGMan writes pipeline.* until it ends, so these files
# stay, for `poolcast sweep cleanup`. Nothing is overwritten; a failed move is not a failure of the sweep.
tidy() {
    name=$1
    shift
    # The DAG has succeeded, and no job fetches the archives any more.
    if [ -e condor/shared_inputs ]; then
        shared=$(cat condor/shared_inputs)
        rm -f "$shared"/*.tar "$shared"/*.tar.new
        rmdir "$shared"
    fi
    for entry; do
        if [ -e "$name/$entry" ]; then
            echo "nothing was moved: $name/$entry is there already"
            return
        fi
    done
    mkdir -p "$name" || return
    # Inputs of the jobs. Their results are in rows/ and trials/ now.
    rm -rf parts
    for entry; do
        [ -e "$entry" ] || continue
        mv "$entry" "$name/$entry" || return
        echo "$entry -> $name/$entry"
    done
}

# Sends the results of the sweep to the trackers in condor/tracking, with the program in that file, and prints a summary.
# DAGMan passes HOME and PATH on, so the API key is the one in ~/.netrc. The outcome of the DAG does not depend on it.
track() {
    program=${1%
*} trackers=${1#*
}
    command -v "$program" >/dev/null || program=poolcast
    if said=$("$program" track "$PWD" --to "$trackers" --for 600 2>&1 </dev/null); then
        rest=
    else
        rest="tracking: the rest can be sent by: $program track $PWD --to $trackers"
    fi
    printf '%s\n' "$said" | sed -e '/^$/d' -e 's/^/tracking: /'
    [ -z "$rest" ] || echo "$rest"
}

case $1 in
begin) # NEEDED.failed OWN.failed: skips the node if a required node has failed
    if [ -e "$2" ]; then
        [ -e "$3" ] || cp "$2" "$3"
        exit $skip
    fi
    ;;
epoch) # OWN.failed ROWS: skips the node if the trial has failed, or its training ended before this epoch
    if [ -e "$2" ] || [ -s "$3" ]; then
        exit $skip
    fi
    ;;
ended) # OWN.failed ERRORS NODE RETURN RETRY MAX_RETRIES [LEFT]: records a failure that a retry would not fix.
    # LEFT is the output of the job: the directory of a part, or of tensors to share.
    own=$2 errors=$3 node=$4 return=$5 left=${8:-}
    case $left in parts/*) gather "$left" || exit 1 ;; esac
    if [ "$return" -eq 0 ]; then
        case $left in tensors/*) share "$left" "$errors" || exit 1 ;; esac
        rm -f "$own"
        exit 0
    fi
    # -1002: the job was removed, as DAGMan does with a job that is held too often. Other codes below -1000: not even submitted.
    if [ "$return" -le -1000 ] && [ "$return" -ne -1002 ]; then exit 1; fi
    # Exit code 2 is permanent. Other failures may succeed after a retry.
    if [ "$return" -ne 2 ] && [ "$6" -lt "$7" ]; then exit 1; fi
    case $return in
    -1002) how='removed from the queue' ;;
    -*) how="killed by signal ${return#-}" ;;
    *) how="exit code $return" ;;
    esac
    why=$(grep '^error: ' "$errors" 2>/dev/null | tail -n 1)
    printf '%s: %s%s\n' "$node" "$how" "${why:+: ${why#error: }}" >"$own.new" && mv "$own.new" "$own"
    ;;
share) # DIR ERRORS: packs the inputs that exist before the first job
    rm -f "$3"
    share "$2" "$3" || exit 1
    ;;
take) # RETURN DIR: moves the output of a job from DIR to its destination
    if [ "$2" -ne 0 ]; then
        [ "$2" -eq 2 ] && exit 2
        exit 1
    fi
    # A job on another machine made these files, so the script accepts only known results.
    other=$(cd "$3" && find . ! -type d ! \( -type f \( -path './trials/*' -o -path './ensemble/*' -o -path ./best.json \
        -o -path ./bestmodel.info -o -path ./selection.json -o -path ./results.csv -o -path ./results.jsonl \
        -o -path ./chosen.files -o -path ./manifest.json -o -path ./report.html \) \)) || exit 1
    if [ -n "$other" ]; then
        echo "error: $3 holds what is no result" >&2
        exit 1
    fi
    cp -R "$3/." . && rm -rf "$3" chosen
    ;;
chosen) # links the files in chosen.files into chosen/: all inputs of the evaluation of the best trials
    # A job on another machine wrote the names, so the script accepts only safe relative paths.
    if grep -q -e '\.\.' -e '[^A-Za-z0-9_./*-]' -e '^[/.-]' chosen.files; then
        echo 'error: chosen.files names what is no result' >&2
        exit 1
    fi
    rm -rf chosen && mkdir chosen || exit 1
    while IFS= read -r pattern; do
        for file in $pattern; do
            [ ! -f "$file" ] || printf '%s\n' "$file"
        done
    done <chosen.files | sort -u >chosen.list
    # Copies the files if the file system has no hard links.
    xargs cp -l --parents -t chosen <chosen.list 2>/dev/null || {
        rm -rf chosen && mkdir chosen && xargs cp --parents -t chosen <chosen.list || exit 1
    }
    rm chosen.list
    ;;
report) # DAG_STATUS FAILED_COUNT [NAME ENTRY...]: writes the summary; exits with the status of the DAG
    status=$2 failed=$3 name=${4:-}
    {
        echo "DAG status $status, $failed nodes failed"
        for record in tensors/*.failed rows/*.failed; do
            [ -e "$record" ] || continue
            node=${record##*/} why=$(cat "$record")
            node=${node%.failed}
            [ "${record%/*}" = rows ] || node=tensors-$node
            printf '%s failed: %s\n' "$node" "${why#"$node: "}"
        done
        if [ "$status" -ne 0 ]; then
            grep '^error: ' logs/parse.err logs/share.err logs/best.err logs/evaluate.err 2>/dev/null
            grep '^error: cannot share ' logs/tensors-*.err 2>/dev/null
        fi
        [ ! -e bestmodel.info ] || cat bestmodel.info
    } >pipeline.report.new && mv pipeline.report.new pipeline.report
    tracking=$(cat condor/tracking 2>/dev/null)
    code=0
    if [ "$status" -ne 0 ] || [ "$failed" -ne 0 ]; then
        code=1
    elif [ -n "$name" ]; then
        shift 3
        tidy "$@" 2>>pipeline.report >>pipeline.report
    fi
    [ -z "$tracking" ] || track "$tracking" >>pipeline.report
    exit $code
    ;;
esac
