#!/bin/bash
# Runs one `kdacheck check` as a Slurm job array, a shard in each task, and merges the results to what a single
# run would have reported.
#
#   examples/slurm/submit.sh SHARDS FOLDER [arguments of kdacheck check...]
#   examples/slurm/submit.sh 8 results my_fixtures/ --impl cuda-prefill --device gpu
#
# FOLDER, which all nodes must see, then holds shard-I.json and shard-I.log, and of the whole check.json, check.xml
# and check.log. Prints the id of the job that merges: its exit status is the run's. SBATCH_* variables go to all
# jobs, as in SBATCH_PARTITION=gpu SBATCH_GPUS=1. KDACHECK is the program (default: ./kdacheck of this tree).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
(($# >= 2)) || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
shards=$1
folder=$2
shift 2
export KDACHECK=${KDACHECK:-$here/../../kdacheck}
"$KDACHECK" --version >/dev/null  # builds it here where it is not yet, and not once a task
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
rm -f "$folder"/shard-*.json "$folder"/check.json "$folder"/check.xml  # nothing of a run before is merged
array=$(sbatch --parsable --job-name=kdacheck --array="1-$shards" --output="$folder/shard-%a.log" \
  "$here/shard.sh" "$folder" "$@")
# afterany: what a shard says alone is no verdict, and a shard that is missing is named by merge.
sbatch --parsable --job-name=kdacheck-merge --dependency="afterany:$array" --output="$folder/check.log" \
  "$here/merge.sh" "$folder" "$shards"
