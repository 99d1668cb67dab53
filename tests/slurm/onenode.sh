#!/usr/bin/env bash
# A Slurm of one node, for a test: its own ports, folders and daemons, and no accounts.
#
#   onenode.sh up DIR     prints nothing; SLURM_CONF=DIR/slurm.conf is then what sbatch needs. DIR: absolute and short
#   onenode.sh down DIR
set -euo pipefail
folder="$2"
export SLURM_CONF="$folder/slurm.conf"
host="$(hostname -s)"
if [[ "$1" == up ]]; then
  mkdir -p "$folder"/{state,spool,log}
  read -r controller daemon < <(python3 -c 'import socket
s=[socket.socket() for _ in "ab"]
[x.bind(("127.0.0.1",0)) for x in s]; print(*[x.getsockname()[1] for x in s])')
  memory=$(($(awk '/MemTotal/{print $2}' /proc/meminfo) / 1024 - 1024))
  # cred_expire: how long the credentials of a task live, and with them how long it waits before it may run again.
  cat >"$SLURM_CONF" <<CONF
ClusterName=ulpscope
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
SlurmctldPort=$controller
SlurmdPort=$daemon
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/log/jobcomp.txt
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
JobRequeue=1
MinJobAge=600
KillWait=2
SlurmctldTimeout=10
SlurmdTimeout=10
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
  slurmctld
  slurmd
  for _ in $(seq 200); do
    if [[ "$(sinfo -h -o %T 2>/dev/null)" == idle ]]; then
      exit 0
    fi
    sleep 0.1
  done
  tail -n 5 "$folder/log/slurmctld.log" >&2
  exit 1
fi
scontrol shutdown slurmctld >/dev/null || true
if [[ -f "$folder/slurmd.pid" ]]; then
  kill "$(cat "$folder/slurmd.pid")" || true
fi
for _ in $(seq 100); do
  if [[ ! -e "$folder/slurmd.pid" && ! -e "$folder/slurmctld.pid" ]]; then
    exit 0
  fi
  sleep 0.1
done
exit 1
