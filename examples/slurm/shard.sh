#!/bin/bash
# One task of the array: shard.sh FOLDER [arguments of kdacheck check...], submitted by submit.sh.
#
# A minute before the time limit the run is asked to end, so that what is done is reported.
#SBATCH --ntasks=1
#SBATCH --signal=TERM@60
folder=$1
shift
report=$folder/shard-$SLURM_ARRAY_TASK_ID.json
srun "$KDACHECK" check --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --json "$report" "$@"
status=$?
# Failures of cases are no failure of the task: they are counted when all shards are together.
[[ -f $report ]] || exit "$status"
