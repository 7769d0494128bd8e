#!/bin/sh
# Writes advice on a held DAG node to NODE.advice, in the directory of the node. DAGMan runs this script when it holds the node's job.
# Use it in a DAG whose nodes have one job each:
#
#   SCRIPT HOLD ALL_NODES /home/me/held-jobs/held-node.sh $JOB
#
# The script makes the advice in the background, because DAGMan crashes if it holds a node again while the node's script runs.
# Nodes that are held at the same time get their advice one after another.
set -u
learned=$HOME/held-jobs/out
log=$(condor_config_val EVENT_LOG)
flock "$0" "$HOME/.local/bin/poolcast" -q advise "$learned" --log "$log" --dag "$1" </dev/null >/dev/null 2>&1 &
