#!/bin/sh
# What DAGMan runs on the access point before and after the jobs of a DAG, in the DAG's directory.
# A sweep is not to fail with one of its jobs. DAGMan's own words for that, WEAK PARENT and TOLERANCE, need HTCondor 25.13
# and 25.14; scripts do it everywhere: what fails for good leaves a record, a file that says why, its node succeeds, and
# what depends on it is skipped. What is no trial's fault, such as a job that cannot be submitted, stays a failure.
set -u
export LC_ALL=C
skip=10 # PRE_SKIP

# Takes what the job of a part has left to where a sweep keeps it: its rows, and the trials that have ended.
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

# Packs the directory $1 into the one that condor/shared_inputs names, where jobs fetch it; says in $2 why it cannot. The same
# files give the same archive, so it may be packed again, and caches, which never look twice at a name, are right for ever.
share() {
    shared=$(cat condor/shared_inputs) || return 1
    archive=$shared/$(printf %s "$1" | tr / -).tar
    said=$({
        mkdir -p "$shared" &&
            tar --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=u=rwX,go=rX \
                -cf "$archive.new" -- "$1"
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

# NAME ENTRY...: moves what was left to a directory of the sweep's name. What DAGMan writes until its own end, pipeline.*,
# stays, for `poolcast sweep cleanup`. Nothing is replaced; what cannot be moved is no failure of the sweep.
tidy() {
    name=$1
    shift
    # All went well, and no job fetches anything more.
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
    # What jobs took along; what they left of it is in rows/ and trials/ by now.
    rm -rf parts
    for entry; do
        [ -e "$entry" ] || continue
        mv "$entry" "$name/$entry" || return
        echo "$entry -> $name/$entry"
    done
}

# Sends what came of the sweep to the trackers that condor/tracking names, by the program that it names, and says what was
# sent. DAGMan hands on HOME and PATH: the key is that of ~/.netrc. Whatever becomes of it, the DAG has ended as it has.
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
begin) # NEEDED.failed OWN.failed: skips where what is needed has failed
    if [ -e "$2" ]; then
        [ -e "$3" ] || cp "$2" "$3"
        exit $skip
    fi
    ;;
epoch) # OWN.failed ROWS: skips where the trial has failed, or its training was over before this epoch
    if [ -e "$2" ] || [ -s "$3" ]; then
        exit $skip
    fi
    ;;
ended) # OWN.failed ERRORS NODE RETURN RETRY MAX_RETRIES [LEFT]: records a failure that another attempt would not help.
    # LEFT is what the job left: the directory of a part, or of tensors that are to be shared.
    own=$2 errors=$3 node=$4 return=$5 left=${8:-}
    case $left in parts/*) gather "$left" || exit 1 ;; esac
    if [ "$return" -eq 0 ]; then
        case $left in tensors/*) share "$left" "$errors" || exit 1 ;; esac
        rm -f "$own"
        exit 0
    fi
    # -1002: removed, as DAGMan does with a job that is held too often. Else it was not even submitted.
    if [ "$return" -le -1000 ] && [ "$return" -ne -1002 ]; then exit 1; fi
    # 2 will never work, the rest may.
    if [ "$return" -ne 2 ] && [ "$6" -lt "$7" ]; then exit 1; fi
    case $return in
    -1002) how='removed from the queue' ;;
    -*) how="killed by signal ${return#-}" ;;
    *) how="exit code $return" ;;
    esac
    why=$(grep '^error: ' "$errors" 2>/dev/null | tail -n 1)
    printf '%s: %s%s\n' "$node" "$how" "${why:+: ${why#error: }}" >"$own.new" && mv "$own.new" "$own"
    ;;
share) # DIR ERRORS: packs what was made before the first job
    rm -f "$3"
    share "$2" "$3" || exit 1
    ;;
take) # RETURN DIR: takes what a job has left in DIR to its place
    if [ "$2" -ne 0 ]; then
        [ "$2" -eq 2 ] && exit 2
        exit 1
    fi
    # A job left it, and jobs run elsewhere: nothing but results is taken.
    other=$(cd "$3" && find . ! -type d ! \( -type f \( -path './trials/*' -o -path './ensemble/*' -o -path ./best.json \
        -o -path ./bestmodel.info -o -path ./selection.json -o -path ./results.csv -o -path ./results.jsonl \
        -o -path ./chosen.files -o -path ./manifest.json -o -path ./report.html \) \)) || exit 1
    if [ -n "$other" ]; then
        echo "error: $3 holds what is no result" >&2
        exit 1
    fi
    cp -R "$3/." . && rm -rf "$3" chosen
    ;;
chosen) # links what chosen.files names into chosen/: all that the evaluation of the best trials needs
    # A job wrote the names, and jobs run elsewhere: nothing but results is taken.
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
    # A copy, where the file system has no links.
    xargs cp -l --parents -t chosen <chosen.list 2>/dev/null || {
        rm -rf chosen && mkdir chosen && xargs cp --parents -t chosen <chosen.list || exit 1
    }
    rm chosen.list
    ;;
report) # DAG_STATUS FAILED_COUNT [NAME ENTRY...]: says how it all went; its exit code is that of the DAG
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
