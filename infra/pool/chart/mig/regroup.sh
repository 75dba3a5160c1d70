#!/bin/sh
# Changes the MIG layout of a node: regroup.sh NODE LAYOUT. GPUs are reset only after every pod has left the node: agents
# drain, live streams move to other pools, and a pod that does not leave within an hour stops the change.
set -eu
node=${1:?NODE} layout=${2:?LAYOUT of mig/layouts.yaml}
drain_seconds=3600
state() { kubectl get node "$node" -o "jsonpath={.metadata.labels.nvidia\.com/mig\.config\.state}"; }

kubectl cordon "$node"
# Evictions respect the disruption budgets of pools. The GPU operator's own pods are of a DaemonSet and stay.
kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout "${drain_seconds}s"
# The manager sets a state of its own; that of the former change must not pass for it.
kubectl label node "$node" nvidia.com/mig.config.state=pending --overwrite
kubectl label node "$node" "nvidia.com/mig.config=$layout" --overwrite
until [ "$(state)" = success ]; do
  if [ "$(state)" = failed ]; then
    echo "regroup: $layout failed on $node, which stays cordoned: kubectl logs -n gpu-operator ds/nvidia-mig-manager" >&2
    exit 1
  fi
  sleep "${POLL_SECONDS:-5}"
done
kubectl uncordon "$node"
