#!/bin/sh
# What DAGMan runs when the job of a node is held: it leaves advice on the job in NODE.advice, in the directory of the node.
# In a DAG whose nodes have one job each:
#
#   SCRIPT HOLD ALL_NODES /home/me/held-jobs/held-node.sh $JOB
#
# The advice is made in the background, as DAGMan dies if a node is held again while the script of its last hold runs. Nodes
# that are held together get theirs one after another.
set -u
learned=$HOME/held-jobs/out
log=$(condor_config_val EVENT_LOG)
flock "$0" "$HOME/.local/bin/poolcast" -q advise "$learned" --log "$log" --dag "$1" </dev/null >/dev/null 2>&1 &
