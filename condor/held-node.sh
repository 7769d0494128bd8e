#!/bin/sh
# Writes advice on a held DAG node to NODE.advice, in the directory of the node. DAGMan runs this script when it holds the node's job.
# Use it in a DAG whose nodes have one job each:
#
#   SCRIPT HOLD ALL_NODES /home/me/held-jobs/held-node.sh $JOB
#
# The script makes the advice in the background, because DAGMan crashes if it holds a node again while the node's script runs.
# Nodes that are held at the same time get their advice one after another. Without a run in $learned, the model of the site answers,
# and without a log that you may read, the logs that your held jobs name are read.
set -u
learned=$HOME/held-jobs/out
log=$(condor_config_val EVENT_LOG)
set -- --dag "$1"
[ ! -r "$log" ] || set -- --log "$log" "$@"
[ ! -e "$learned" ] || set -- "$learned" "$@"
flock "$0" "$HOME/.local/bin/poolcast" -q advise "$@" </dev/null >/dev/null 2>&1 &
