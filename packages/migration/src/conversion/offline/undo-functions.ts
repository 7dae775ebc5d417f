/** A part of a script: what that of the way back does more than that of a conversion: the UIDs of what a conversion makes are not known when it is written. */
export const undoFunctions = `#!/bin/sh
# identify: finds the objects that the conversion has made, by what they are, and takes their UIDs.
identify() {
  get pv "$old" '' "{.metadata.uid} {.spec.capacity.storage} {.spec.claimRef.namespace}/{.spec.claimRef.name} $old_path"
  old_uid=\${value%% *}
  if [ -n "$value" ]; then
    value=\${value#* }
    check_size "PersistentVolume $old" "\${value%% *}" "$capacity"
    [ "\${value#* }" = "$namespace/$claim $old_source" ] || fail "PersistentVolume $old is another one: \${value#* }"
  fi
  get pvc "$claim" "$namespace" '{.metadata.uid} {.spec.volumeName} {.spec.resources.requests.storage}'
  # Only the claim of the converted volume is deleted.
  claim_uid=none
  case "$value" in
  *" $old "*)
    check_size "claim $namespace/$claim" "\${value##* }" "$size"
    claim_uid=\${value%% *}
    ;;
  esac
}

# check_size OBJECT SIZE SIZE: the manifests of the way back are those of before.
check_size() {
  [ "$2" = "$3" ] || fail "$1 has the size $2, and had $3 in the dump: write $2 into $dir/$volume_file and $dir/$claim_file, and as capacity and size into this script"
}

# check_accepted: later versions of the API server refuse some sources. Nothing is changed yet.
check_accepted() {
  get pv "$new" '' '{.metadata.uid}'
  [ -z "$value" ] || return 0
  "$kubectl" create --dry-run=server -f "$here/$dir/$volume_file" >/dev/null || fail "the API server does not take PersistentVolume $new any more"
}
`;
