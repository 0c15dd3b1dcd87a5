#!/bin/bash
# The job after the array: merge.sh FOLDER SHARDS, submitted by submit.sh. A shard that left no report is named.
#SBATCH --ntasks=1
folder=$1
shards=$2
reports=()
for ((i = 1; i <= shards; i++)); do
  [[ -f $folder/shard-$i.json ]] && reports+=("$folder/shard-$i.json")
done
exec "$KDACHECK" merge "${reports[@]}" -o "$folder/check.json" --junit "$folder/check.xml"
