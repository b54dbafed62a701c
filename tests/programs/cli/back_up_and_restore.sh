# A memory that is saved and restored elsewhere, from a data directory that was not there before to another one.
# needs: a new data directory
recollect doctor
recollect remember "The spare key is under the flowerpot."
recollect backup all.backup
RECOLLECT_DATA_DIR="$RECOLLECT_DATA_DIR-restored" recollect restore all.backup
RECOLLECT_DATA_DIR="$RECOLLECT_DATA_DIR-restored" recollect recall "Where is the key?" | grep flowerpot
