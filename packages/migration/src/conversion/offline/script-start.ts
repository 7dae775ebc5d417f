/**
 * How a script begins: what it says of itself, and its functions. Each is one step of a volume, looks first whether it is done, and ends with its check. POSIX sh;
 * `kubectl` 1.20 or newer. Source of the order: docs/decisions/0031-conversion-in-place.md.
 *
 * What the script is for takes the place of `PURPOSE`.
 */
export const scriptStart = `#!/bin/sh
# PURPOSE No data are copied.
#
# Run it again after a failure: each step looks first whether it is done. What it does in each step is in the functions
# that follow; the volumes are at the end. Its settings are variables of the environment:
#   KUBECTL     the program; default kubectl, which takes KUBECONFIG
#   TIMEOUT     how long a step waits for the cluster, in seconds; default 600
#   INTERVAL    how often it looks, in seconds; default 2
#   BACKUP_DIR  where the objects are saved before they are removed; default: backup, beside the script
#
# Do not run it while another conversion of the same volumes is under way.

set -eu
umask 077
kubectl=\${KUBECTL:-kubectl}
# How long a step waits for the cluster, and how often it looks, in seconds.
timeout=\${TIMEOUT:-600}
interval=\${INTERVAL:-2}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
backup=\${BACKUP_DIR:-$here/backup}

say() { printf '%s\\n' "$*"; }
fail() {
  printf 'stopped: %s\\n' "$*" >&2
  exit 1
}

# get KIND NAME NAMESPACE JSONPATH: sets $value; empty where there is no such object. A request that fails ends the script.
get() {
  if [ -n "$3" ]; then
    value=$("$kubectl" get "$1" "$2" -n "$3" --ignore-not-found -o "jsonpath=$4") || fail "$1 $3/$2 cannot be read"
  else
    value=$("$kubectl" get "$1" "$2" --ignore-not-found -o "jsonpath=$4") || fail "$1 $2 cannot be read"
  fi
}

# wait_for WORDS FUNCTION...: until the function succeeds.
wait_for() {
  words=$1
  shift
  until_second=$(($(date +%s) + timeout))
  until "$@"; do
    [ "$(date +%s)" -lt "$until_second" ] || fail "$words: waited for $timeout seconds"
    say "  waits: $words"
    sleep "$interval"
  done
}

# The objects are those that the script was written for, or those that it has made.
check_objects() {
  get pv "$old" '' '{.metadata.uid}'
  old_now=$value
  get pv "$new" '' '{.metadata.uid}'
  new_now=$value
  get pvc "$claim" "$namespace" '{.metadata.uid} {.metadata.deletionTimestamp} {.spec.volumeName}'
  claim_now=\${value%% *}
  bound_now=\${value##* }
  claim_state=$value
  if [ -n "$old_now" ] && [ "$old_now" != "$old_uid" ]; then
    fail "PersistentVolume $old is another one than in the dump; write the script again"
  fi
  if [ "$claim_now" = "$claim_uid" ]; then
    [ -n "$old_now" ] || fail "PersistentVolume $old of claim $namespace/$claim is gone"
    [ "$bound_now" = "$old" ] || fail "claim $namespace/$claim is not bound to $old"
    if [ -z "$new_now" ] && [ "$claim_state" != "$claim_now  $bound_now" ]; then
      fail "claim $namespace/$claim is being deleted, and not by this script; save it first"
    fi
    check_owners
  elif [ -z "$new_now" ]; then
    fail "claim $namespace/$claim is another one than in the dump; write the script again"
  elif [ -n "$bound_now" ] && [ "$bound_now" != "$new" ]; then
    fail "claim $namespace/$claim is bound to $bound_now"
  fi
}

# A claim whose owner is gone is deleted by the garbage collector, and with policy Delete its disk as well.
check_owners() {
  while read -r resource name uid; do
    get "$resource" "$name" "$namespace" '{.metadata.uid}'
    [ "$value" = "$uid" ] || fail "$resource $namespace/$name, which owns claim $claim, is gone: remove it from $dir/$claim_file and $dir/owners"
  done <"$here/$dir/owners"
}

# save KIND NAME NAMESPACE FILE: the object as it is, once.
save() {
  [ -e "$backup/$4" ] && return
  mkdir -p "$backup"
  if [ -n "$3" ]; then
    "$kubectl" get "$1" "$2" -n "$3" -o yaml >"$backup/$4.part" || fail "$1 $3/$2 cannot be saved"
  else
    "$kubectl" get "$1" "$2" -o yaml >"$backup/$4.part" || fail "$1 $2 cannot be saved"
  fi
  mv "$backup/$4.part" "$backup/$4"
}

save_objects() {
  say "  saves the objects in $backup"
  if [ -n "$old_now" ]; then
    save pv "$old" '' "$saved-volume.yaml"
  fi
  if [ "$claim_now" = "$claim_uid" ]; then
    save pvc "$claim" "$namespace" "$saved-claim.yaml"
  fi
}

# set_policy NAME UID POLICY
set_policy() {
  get pv "$1" '' '{.spec.persistentVolumeReclaimPolicy}'
  [ "$value" != "$3" ] || return 0
  "$kubectl" patch pv "$1" --type=json -p "[{\\"op\\":\\"test\\",\\"path\\":\\"/metadata/uid\\",\\"value\\":\\"$2\\"},{\\"op\\":\\"add\\",\\"path\\":\\"/spec/persistentVolumeReclaimPolicy\\",\\"value\\":\\"$3\\"}]"
  # Check: read back.
  get pv "$1" '' '{.spec.persistentVolumeReclaimPolicy}'
  [ "$value" = "$3" ] || fail "PersistentVolume $1 has the policy $value, not $3"
}

# Nothing that happens from here on deletes the disk.
retain_old_volume() {
  [ -n "$old_now" ] || return 0
  say "  PersistentVolume $old: policy Retain"
  set_policy "$old" "$old_uid" Retain
}

# scale_down KIND NAMESPACE NAME UID
scale_down() {
  get "$1" "$3" "$2" '{.metadata.uid}'
  [ "$value" = "$4" ] || fail "$1 $2/$3 is another one than in the dump; write the script again"
  say "$1 $2/$3: no replicas"
  "$kubectl" scale "$1/$3" -n "$2" --replicas=0
  # Check.
  get "$1" "$3" "$2" '{.spec.replicas}'
  [ "$value" = 0 ] || fail "$1 $2/$3 has $value replicas"
}

# scale_up KIND NAMESPACE NAME REPLICAS
scale_up() {
  get "$1" "$3" "$2" '{.spec.replicas}'
  [ "$value" = 0 ] || return 0
  say "$1 $2/$3: $4 replicas"
  "$kubectl" scale "$1/$3" -n "$2" --replicas="$4"
  # Check.
  get "$1" "$3" "$2" '{.spec.replicas}'
  [ "$value" = "$4" ] || fail "$1 $2/$3 has $value replicas"
}

# No pod uses the claim, no VolumeAttachment is for the disk, and no node has it attached or in use.
is_quiet() {
  value=$("$kubectl" get pods -n "$namespace" -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.status.phase}{range .spec.volumes[*]}{" "}{.persistentVolumeClaim.claimName}{end}{"\\n"}{end}') || fail "pods of $namespace cannot be read"
  users=$(printf '%s\\n' "$value" | awk -v claim="$claim" '$2 != "Succeeded" && $2 != "Failed" { for (i = 3; i <= NF; i++) if ($i == claim) { print "Pod " $1; next } }')
  value=$("$kubectl" get volumeattachments -o 'jsonpath={range .items[*]}{.spec.source.persistentVolumeName}{" "}{.metadata.name}{" "}{.spec.nodeName}{"\\n"}{end}') || fail "VolumeAttachments cannot be read"
  held=$(printf '%s\\n' "$value" | awk -v old="$old" -v new="$new" '$1 == old || $1 == new { print "VolumeAttachment " $2 " on " $3 }')
  value=$("$kubectl" get nodes -o 'jsonpath={range .items[*].status.volumesAttached[*]}{.name}{"\\n"}{end}{range .items[*].status.volumesInUse[*]}{@}{"\\n"}{end}') || fail "nodes cannot be read"
  nodes=$(printf '%s\\n' "$value" | grep -Fx -f "$here/$dir/disk-names" || true)
  [ -z "$users$held$nodes" ] && return
  printf '%s\\n' "$users" "$held" "$nodes" | sed '/^$/d; s/^/    /'
  return 1
}

wait_for_quiet() {
  # Once the claim is bound to the new volume, its pods may use it.
  [ "$bound_now" != "$new" ] || return 0
  wait_for "the disk of $namespace/$claim is in use" is_quiet
}

is_available() {
  get pv "$new" '' '{.status.phase}'
  [ "$value" = Available ]
}

# It is bound to the claim by name, so that a claim of this name gets this disk and no new one, by which client it may be made.
create_new_volume() {
  if [ -z "$new_now" ]; then
    say "  PersistentVolume $new: is made"
    "$kubectl" create -f "$here/$dir/$volume_file"
  fi
  # Check: the claim, the driver and the disk.
  get pv "$new" '' "{.metadata.uid} {.spec.claimRef.uid} {.spec.claimRef.namespace}/{.spec.claimRef.name} $new_path"
  new_now=\${value%% *}
  value=\${value#* }
  new_claim=\${value%% *}
  [ "\${value#* }" = "$namespace/$claim $new_source" ] || fail "PersistentVolume $new is another one: $value"
  [ "$bound_now" != "$new" ] || return 0
  set_policy "$new" "$new_now" Retain
  [ -z "$new_claim" ] || [ "$new_claim" != "$claim_now" ] || return 0
  [ -z "$new_claim" ] || free_new_volume
  wait_for "PersistentVolume $new is not Available" is_available
}

# It remembers a claim that is not there any more: only the name counts.
free_new_volume() {
  say "  PersistentVolume $new: waits for a claim of this name again"
  get pv "$new" '' '{.metadata.resourceVersion}'
  "$kubectl" patch pv "$new" --type=merge -p "{\\"metadata\\":{\\"uid\\":\\"$new_now\\",\\"resourceVersion\\":\\"$value\\"},\\"spec\\":{\\"claimRef\\":{\\"uid\\":null,\\"resourceVersion\\":null}}}"
}

# delete_object PATH UID: an object of the same name that another client has made is not deleted.
delete_object() {
  mkdir -p "$backup"
  printf '{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"%s"}}\\n' "$2" >"$backup/delete-options.json"
  "$kubectl" delete --raw "$1" -f "$backup/delete-options.json" >/dev/null
}

is_claim_gone() {
  get pvc "$claim" "$namespace" '{.metadata.uid}'
  [ "$value" != "$claim_uid" ]
}

delete_claim() {
  [ "$claim_now" = "$claim_uid" ] || return 0
  # Check once more: a pod may have started meanwhile.
  is_quiet || fail "the disk of $namespace/$claim is in use again"
  say "  PersistentVolumeClaim $namespace/$claim: is deleted"
  # One that is being deleted can be deleted again.
  delete_object "/api/v1/namespaces/$namespace/persistentvolumeclaims/$claim" "$claim_uid"
  wait_for "claim $namespace/$claim is still there" is_claim_gone
}

is_bound() {
  get pvc "$claim" "$namespace" '{.status.phase} {.spec.volumeName} {.metadata.uid}'
  claim_now=\${value##* }
  [ "$value" = "Bound $new $claim_now" ] || return 1
  get pv "$new" '' '{.status.phase} {.spec.claimRef.uid}'
  [ "$value" = "Bound $claim_now" ]
}

create_claim() {
  get pvc "$claim" "$namespace" '{.metadata.uid}'
  if [ -z "$value" ]; then
    say "  PersistentVolumeClaim $namespace/$claim: is made again"
    # Another client may be faster: that claim is bound to the new volume as well.
    "$kubectl" create -f "$here/$dir/$claim_file" || say "  it is there already"
  fi
  # Check: both say that they are bound to each other.
  wait_for "claim $namespace/$claim is not bound to $new" is_bound
}

is_released() {
  get pv "$old" '' '{.status.phase} {.spec.persistentVolumeReclaimPolicy}'
  # One that no claim was ever bound to is Available.
  [ "$value" = "Released Retain" ] || [ "$value" = "Available Retain" ]
}

is_old_volume_gone() {
  get pv "$old" '' '{.metadata.uid}'
  [ -z "$value" ]
}

# With policy Retain the disk stays.
delete_old_volume() {
  [ -n "$old_now" ] || return 0
  wait_for "PersistentVolume $old is not Released with policy Retain" is_released
  say "  PersistentVolume $old: is deleted, its disk stays"
  delete_object "/api/v1/persistentvolumes/$old" "$old_uid"
  wait_for "PersistentVolume $old is still there" is_old_volume_gone
}

restore_policy() {
  # Check once more, live: this is the step after which the disk may be deleted with its claim.
  is_bound || fail "claim $namespace/$claim and PersistentVolume $new are not bound to each other"
  get pvc "$claim" "$namespace" '{.metadata.deletionTimestamp}'
  [ -z "$value" ] || fail "claim $namespace/$claim is being deleted: its disk is kept with policy Retain"
  check_owners
  say "  PersistentVolume $new: policy $policy"
  set_policy "$new" "$new_now" "$policy"
}

# any_left VOLUME...: whether one of the volumes is not converted yet.
any_left() {
  for volume in "$@"; do
    "$volume"
    get pvc "$claim" "$namespace" '{.spec.volumeName}'
    [ "$value" = "$new" ] || return 0
    get pv "$old" '' '{.metadata.uid}'
    [ -z "$value" ] || return 0
  done
  return 1
}

# convert: the volume that the variables describe.
convert() {
  say "PersistentVolume $old, claim $namespace/$claim"
  check_objects
  save_objects
  retain_old_volume
  wait_for_quiet
  create_new_volume
  delete_claim
  create_claim
  delete_old_volume
  restore_policy
}
`;
