#!/usr/bin/env bash
# Runs `lamella verify` in several ranks of Open MPI, each its own shard, and merges their reports.
# usage: tools/verify_mpi.sh RANKS REPORT.json [OPTIONS OF lamella verify]
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^# usage: //p' "$0" >&2; exit 2; }
ranks=$1 report=$2
shift 2
program=${LAMELLA:-$(dirname "${BASH_SOURCE[0]}")/../build/release/lamella}
command -v mpirun >/dev/null || { echo "verify_mpi: no mpirun (apt-get install openmpi-bin)" >&2; exit 2; }
parts=$(mktemp -d)
trap 'rm -r "$parts"' EXIT
case " $* " in *" --seed"*) ;; *) set -- --seed "$RANDOM" "$@" ;; esac   # all ranks share it
options=(--oversubscribe)
[ "$(id -u)" != 0 ] || options+=(--allow-run-as-root)
command -v ssh >/dev/null || options+=(--mca plm isolated)   # Debian's mpirun wants it even for one machine
# A rank that ends with 1 found failures: mpirun would end the others for it, and its report has them.
# shellcheck disable=SC2016
mpirun "${options[@]}" -n "$ranks" bash -c '
  program=$1 parts=$2
  shift 2
  "$program" verify --processes 1 "$@" --shard "$OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE" \
    --json "$parts/$OMPI_COMM_WORLD_RANK.json" >"$parts/$OMPI_COMM_WORLD_RANK.log" 2>&1 || [ $? -eq 1 ] \
    || { cat "$parts/$OMPI_COMM_WORLD_RANK.log" >&2; exit 2; }
  tail -n 2 "$parts/$OMPI_COMM_WORLD_RANK.log" | sed "s/^/rank $OMPI_COMM_WORLD_RANK: /"
' rank "$program" "$parts" "$@"
"$program" merge "$parts"/*.json -o "$report"
