#!/bin/sh
# What DAGMan runs on the access point before and after the jobs of a DAG, in the DAG's directory.
# A sweep is not to fail with one of its trials. DAGMan's own words for that, WEAK PARENT and TOLERANCE, need HTCondor 25.13
# and 25.14; scripts do it everywhere: what fails for good leaves a record, a file that says why, its node succeeds, and
# what depends on it is skipped. What is no trial's fault, such as a job that cannot be submitted, stays a failure.
set -u
skip=10 # PRE_SKIP

case $1 in
begin) # NEEDED.failed OWN.failed: skips where what is needed has failed
    if [ -e "$2" ]; then
        [ -e "$3" ] || cp "$2" "$3"
        exit $skip
    fi
    ;;
epoch) # OWN.failed METRICS: skips where the trial has failed, or its training was over before this epoch
    if [ -e "$2" ] || grep -q '"status": "stopped early"' "$3" 2>/dev/null; then
        exit $skip
    fi
    ;;
ended) # OWN.failed ERRORS NODE RETURN RETRY MAX_RETRIES: records a failure that another attempt would not help
    own=$2 errors=$3 node=$4 return=$5
    if [ "$return" -eq 0 ]; then
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
report) # DAG_STATUS FAILED_COUNT [NAME ENTRY...]: says how it all went; its exit code is that of the DAG
    status=$2 failed=$3 name=${4:-}
    {
        echo "DAG status $status, $failed nodes failed"
        for record in trials/*.failed; do
            trial=${record##*/}
            [ ! -e "$record" ] || printf '%s failed: %s\n' "${trial%.failed}" "$(cat "$record")"
        done
        [ "$status" -eq 0 ] || grep '^error: ' logs/parse.err logs/best.err 2>/dev/null
        [ ! -e bestmodel.info ] || cat bestmodel.info
    } >pipeline.report.new && mv pipeline.report.new pipeline.report
    if [ "$status" -ne 0 ] || [ "$failed" -ne 0 ]; then exit 1; fi
    [ -n "$name" ] || exit 0
    # All went well: what was left goes to a directory of the sweep's name. What DAGMan writes until its own end, pipeline.*,
    # stays, for `poolcast sweep cleanup`. Nothing is replaced; what cannot be moved is no failure of the sweep.
    shift 4
    for entry; do
        if [ -e "$name/$entry" ]; then
            echo "nothing was moved: $name/$entry is there already" >>pipeline.report
            exit 0
        fi
    done
    mkdir -p "$name" 2>>pipeline.report || exit 0
    for entry; do
        [ -e "$entry" ] || continue
        mv "$entry" "$name/$entry" 2>>pipeline.report || exit 0
        echo "$entry -> $name/$entry" >>pipeline.report
    done
    ;;
esac
