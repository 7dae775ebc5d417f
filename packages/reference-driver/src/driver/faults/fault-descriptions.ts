/**
 * The faults that the reference driver can be made with: each breaks one rule of the CSI contract and
 * leaves the rest as it is, so that each check of a conformance suite can be shown to fail.
 */

/** What each fault does, by its name: the value of `--fault` and of the option `faults`. */
export const faultDescriptions = {
  // Identity
  "plugin-name-empty": "GetPluginInfo answers an empty name",
  "plugin-name-malformed": "GetPluginInfo answers a name that ends with a hyphen and holds a space",
  "plugin-name-too-long": "GetPluginInfo answers a name of 64 characters",
  "plugin-capability-unknown": "GetPluginCapabilities lists the service type UNKNOWN",
  "plugin-capabilities-change": "GetPluginCapabilities answers differently from call to call",
  "controller-service-not-declared":
    "GetPluginCapabilities leaves CONTROLLER_SERVICE out, though it is served",
  "expansion-declared-without-rpc":
    "the plugin declares ONLINE expansion, but neither controller nor node declare EXPAND_VOLUME",
  "probe-fails-internal": "Probe answers INTERNAL",

  // Every service
  "status-without-message": "failures have an empty message",
  "every-failure-internal": "every failure is answered with INTERNAL",
  "secrets-in-error-text": "messages of failures hold the values of the request's secrets",
  "unoffered-rpc-internal":
    "GET_CAPACITY is not declared, and GetCapacity answers INTERNAL instead of UNIMPLEMENTED",
  "pending-call-internal": "a call for a volume that another call works on is answered with INTERNAL",
  "overlong-strings-accepted": "strings of more than 128 bytes are cut instead of refused",
  "overlong-maps-accepted": "maps of more than 4 KiB are emptied instead of refused",

  // Controller: capabilities
  "controller-capability-unknown": "ControllerGetCapabilities lists the type UNKNOWN",
  "published-nodes-without-publish":
    "the controller declares LIST_VOLUMES_PUBLISHED_NODES without PUBLISH_UNPUBLISH_VOLUME",
  "declared-capacity-unimplemented": "GET_CAPACITY is declared, GetCapacity answers UNIMPLEMENTED",

  // CreateVolume
  "create-without-name-accepted": "CreateVolume without a name makes a volume",
  "create-without-capabilities-accepted": "CreateVolume without volume_capabilities makes a volume",
  "create-without-access-mode-accepted": "CreateVolume takes a capability without an access mode",
  "create-without-access-type-accepted": "CreateVolume takes a capability that is neither block nor mount",
  "create-not-idempotent": "CreateVolume repeated makes a second volume",
  "create-repeat-refused": "CreateVolume repeated with equal arguments is ALREADY_EXISTS",
  "create-ignores-incompatible-repeat": "CreateVolume repeated with another size gives the volume there is",
  "create-ignores-other-source":
    "CreateVolume repeated with another content source gives the volume there is",
  "create-ignores-other-parameters": "CreateVolume repeated with other parameters gives the volume there is",
  "create-makes-two-at-once": "two calls of CreateVolume with one name at the same time make two volumes",
  "create-control-characters-accepted": "CreateVolume takes a name with control characters",
  "create-unicode-name-refused": "CreateVolume refuses a name beyond ASCII",
  "create-long-name-refused": "CreateVolume refuses a name of 128 bytes",
  "create-long-names-collide": "CreateVolume compares only the first 100 bytes of names",
  "capacity-below-required": "CreateVolume answers a volume smaller than required_bytes",
  "limit-bytes-exceeded": "CreateVolume answers a volume larger than limit_bytes",
  "limit-below-required-accepted": "CreateVolume takes a limit_bytes below required_bytes",
  "negative-capacity-accepted": "CreateVolume takes negative sizes",
  "impossible-capacity-accepted": "CreateVolume takes a size that no volume can have",
  "unknown-snapshot-source-accepted": "CreateVolume from a snapshot that is not there makes an empty volume",
  "unknown-volume-source-accepted": "CreateVolume from a volume that is not there makes an empty volume",
  "content-source-missing": "CreateVolume answers without the content source of the request",
  "copy-smaller-than-source-accepted": "CreateVolume from a source takes a size smaller than the source",
  "copy-is-empty": "a volume made from a snapshot or volume holds nothing of it",
  "invalid-mutable-parameters-accepted":
    "CreateVolume takes mutable_parameters that the driver does not know",
  "volume-id-too-long": "CreateVolume answers a volume_id of more than 128 bytes",
  "volume-id-empty": "CreateVolume answers an empty volume_id",
  "volume-topology-missing": "CreateVolume answers without accessible_topology",
  "unsatisfiable-topology-accepted":
    "CreateVolume makes a volume elsewhere when the requisite topology is not available",

  // DeleteVolume
  "delete-without-id-accepted": "DeleteVolume without a volume_id is OK",
  "delete-missing-volume-not-found": "DeleteVolume of a volume that is not there is NOT_FOUND",
  "delete-keeps-volume": "DeleteVolume is OK but leaves the volume",
  "delete-published-volume-accepted": "DeleteVolume of a volume that is published to a node is OK",
  "delete-refuses-because-of-snapshots": "DeleteVolume of a volume with snapshots is INTERNAL",

  // ControllerPublishVolume, ControllerUnpublishVolume
  "publish-without-volume-id-accepted": "ControllerPublishVolume without a volume_id is OK",
  "publish-without-node-id-accepted": "ControllerPublishVolume without a node_id is OK",
  "publish-without-capability-accepted": "ControllerPublishVolume without a volume_capability is OK",
  "publish-unknown-volume-accepted": "ControllerPublishVolume of a volume that is not there is OK",
  "publish-unknown-node-accepted": "ControllerPublishVolume to a node that is not there is OK",
  "publish-not-idempotent": "ControllerPublishVolume repeated with equal arguments is ALREADY_EXISTS",
  "publish-incompatible-repeat-accepted":
    "ControllerPublishVolume repeated with another readonly flag or capability is OK",
  "unpublish-without-volume-id-accepted": "ControllerUnpublishVolume without a volume_id is OK",
  "unpublish-not-idempotent": "ControllerUnpublishVolume of a volume that is not published is NOT_FOUND",
  "unpublish-without-node-keeps": "ControllerUnpublishVolume without a node_id leaves the volume published",

  // ValidateVolumeCapabilities
  "validate-without-id-accepted": "ValidateVolumeCapabilities without a volume_id confirms",
  "validate-without-capabilities-accepted": "ValidateVolumeCapabilities without capabilities confirms",
  "validate-unknown-volume-accepted": "ValidateVolumeCapabilities of a volume that is not there confirms",
  "validate-confirms-unsupported": "ValidateVolumeCapabilities confirms what CreateVolume refuses",
  "validate-never-confirms": "ValidateVolumeCapabilities confirms nothing",

  // ListVolumes, ControllerGetVolume, GetCapacity
  "list-repeats-entries": "ListVolumes gives the last entry of a page again on the next",
  "list-loses-entries": "ListVolumes leaves one entry out between two pages",
  "list-never-ends": "ListVolumes gives a next_token on every page",
  "list-ignores-max-entries": "ListVolumes gives all entries, whatever max_entries is",
  "list-negative-max-entries-accepted": "ListVolumes takes a negative max_entries",
  "list-forgets-published-nodes": "ListVolumes gives no published_node_ids",
  "list-keeps-deleted-volumes": "ListVolumes gives volumes that were deleted",
  "starting-token-garbage-accepted": "ListVolumes takes any starting_token as the beginning",
  "get-volume-without-id-accepted": "ControllerGetVolume without a volume_id is OK",
  "get-volume-missing-accepted": "ControllerGetVolume of a volume that is not there is OK",
  "get-volume-without-status": "ControllerGetVolume answers without a status",
  "capacity-negative": "GetCapacity answers a negative capacity",
  "capacity-ignores-topology": "GetCapacity answers room for a topology that is not there",

  // ControllerExpandVolume, ControllerModifyVolume
  "expand-without-id-accepted": "ControllerExpandVolume without a volume_id is OK",
  "expand-without-range-accepted": "ControllerExpandVolume without a capacity_range is OK",
  "expand-unknown-volume-accepted": "ControllerExpandVolume of a volume that is not there is OK",
  "expand-below-required": "ControllerExpandVolume answers less than required_bytes",
  "expand-repeat-refused": "ControllerExpandVolume to the size that the volume has is OUT_OF_RANGE",
  "expand-forgotten": "ControllerExpandVolume is OK, but the volume keeps its size",
  "modify-without-id-accepted": "ControllerModifyVolume without a volume_id is OK",
  "modify-unknown-volume-accepted": "ControllerModifyVolume of a volume that is not there is OK",
  "modify-unknown-parameters-accepted":
    "ControllerModifyVolume takes mutable_parameters that the driver does not know",
  "modify-repeat-refused": "ControllerModifyVolume repeated with equal arguments is ABORTED",

  // Snapshots
  "snapshot-without-name-accepted": "CreateSnapshot without a name is OK",
  "snapshot-without-source-accepted": "CreateSnapshot without a source_volume_id is OK",
  "snapshot-not-idempotent": "CreateSnapshot repeated makes a second snapshot",
  "snapshot-name-of-other-source-accepted":
    "CreateSnapshot with the name of a snapshot of another volume gives that snapshot",
  "snapshot-unknown-source-accepted": "CreateSnapshot of a volume that is not there is OK",
  "snapshot-long-name-refused": "CreateSnapshot refuses a name of 128 bytes",
  "snapshot-without-creation-time": "snapshots have no creation_time",
  "snapshot-with-other-source-id": "snapshots name another source_volume_id than was asked for",
  "snapshot-never-ready": "snapshots never become ready_to_use",
  "delete-snapshot-without-id-accepted": "DeleteSnapshot without a snapshot_id is OK",
  "delete-missing-snapshot-not-found": "DeleteSnapshot of a snapshot that is not there is NOT_FOUND",
  "delete-keeps-snapshot": "DeleteSnapshot is OK but leaves the snapshot",
  "delete-group-member-accepted": "DeleteSnapshot of a member of a group is OK",
  "list-snapshots-ignores-id": "ListSnapshots gives all snapshots, whatever snapshot_id is",
  "list-snapshots-ignores-source": "ListSnapshots gives all snapshots, whatever source_volume_id is",
  "list-snapshots-missing-id-not-found": "ListSnapshots of a snapshot that is not there is NOT_FOUND",
  "list-snapshots-repeats-entries": "ListSnapshots gives the last entry of a page again on the next",
  "list-snapshots-token-garbage-accepted": "ListSnapshots takes any starting_token as the beginning",
  "list-snapshots-ignores-max-entries": "ListSnapshots gives all entries, whatever max_entries is",
  "get-snapshot-without-id-accepted": "GetSnapshot without a snapshot_id is OK",
  "get-snapshot-missing-accepted": "GetSnapshot of a snapshot that is not there is OK",

  // Group snapshots
  "group-capability-unknown": "GroupControllerGetCapabilities lists the type UNKNOWN",
  "group-without-name-accepted": "CreateVolumeGroupSnapshot without a name is OK",
  "group-without-sources-accepted": "CreateVolumeGroupSnapshot without source_volume_ids is OK",
  "group-not-idempotent": "CreateVolumeGroupSnapshot repeated makes a second group",
  "group-other-sources-accepted":
    "CreateVolumeGroupSnapshot with the name of a group of other volumes gives that group",
  "group-members-without-group-id": "members of a group have no group_snapshot_id",
  "group-loses-member": "CreateVolumeGroupSnapshot answers one snapshot too few",
  "group-ready-before-members": "a group is ready_to_use while a member is not",
  "group-delete-without-id-accepted": "DeleteVolumeGroupSnapshot without a group_snapshot_id is OK",
  "group-delete-missing-not-found": "DeleteVolumeGroupSnapshot of a group that is not there is NOT_FOUND",
  "group-delete-mismatch-accepted": "DeleteVolumeGroupSnapshot with ids of other snapshots is OK",
  "group-get-without-id-accepted": "GetVolumeGroupSnapshot without a group_snapshot_id is OK",
  "group-get-missing-accepted": "GetVolumeGroupSnapshot of a group that is not there is OK",
  "group-get-mismatch-accepted": "GetVolumeGroupSnapshot with ids of other snapshots is OK",

  // GetMetadataAllocated, GetMetadataDelta
  "metadata-service-not-declared":
    "GetPluginCapabilities leaves SNAPSHOT_METADATA_SERVICE out, though it is served",
  "metadata-service-not-served": "SNAPSHOT_METADATA_SERVICE is declared and not served",
  "metadata-without-id-accepted": "GetMetadataAllocated and GetMetadataDelta without an id are OK",
  "metadata-unknown-snapshot-accepted":
    "GetMetadataAllocated and GetMetadataDelta of a snapshot that is not there are OK",
  "metadata-offset-beyond-end-accepted": "a starting_offset beyond the end of the volume is OK",
  "metadata-type-unknown": "the block_metadata_type of ranges is UNKNOWN",
  "metadata-shows-nothing": "snapshots are said to hold no data and to have no changes",
  "metadata-unordered": "the ranges of a message descend",
  "metadata-beyond-capacity": "ranges lie beyond the volume_capacity_bytes that comes with them",
  "metadata-capacity-changes": "volume_capacity_bytes changes from message to message of a stream",
  "metadata-lengths-differ": "the first range of FIXED_LENGTH is half as long as the others",
  "metadata-ignores-max-results": "all ranges come in one message, whatever max_results is",
  "metadata-ignores-starting-offset": "streams begin at the first range, whatever starting_offset is",
  "metadata-resumed-short": "a stream from a starting_offset on leaves out the last range",
  "metadata-differs-from-itself": "GetMetadataDelta of a snapshot with itself shows a change",

  // Node: information
  "node-id-empty": "NodeGetInfo answers an empty node_id",
  "node-id-too-long": "NodeGetInfo answers a node_id of more than 256 bytes",
  "node-max-volumes-negative": "NodeGetInfo answers a negative max_volumes_per_node",
  "node-topology-missing": "NodeGetInfo answers without accessible_topology",
  "node-topology-malformed": "NodeGetInfo answers a topology key that is none",
  "node-capability-unknown": "NodeGetCapabilities lists the type UNKNOWN",

  // NodeStageVolume, NodeUnstageVolume
  "stage-without-id-accepted": "NodeStageVolume without a volume_id is OK",
  "stage-without-path-accepted": "NodeStageVolume without a staging_target_path is OK",
  "stage-without-capability-accepted": "NodeStageVolume without a volume_capability is OK",
  "stage-unknown-volume-accepted": "NodeStageVolume of a volume that is not there is OK",
  "stage-relative-path-accepted": "NodeStageVolume takes a relative staging_target_path",
  "stage-not-idempotent": "NodeStageVolume repeated with equal arguments is ALREADY_EXISTS",
  "stage-incompatible-repeat-accepted":
    "NodeStageVolume repeated at the same path with another capability is OK",
  "stage-unpublished-accepted": "NodeStageVolume of a volume that is not published to the node is OK",
  "stage-erases-data": "NodeStageVolume gives an empty volume when one is staged again",
  "unstage-without-id-accepted": "NodeUnstageVolume without a volume_id is OK",
  "unstage-without-path-accepted": "NodeUnstageVolume without a staging_target_path is OK",
  "unstage-not-idempotent": "NodeUnstageVolume of a volume that is not staged is INTERNAL",

  // NodePublishVolume, NodeUnpublishVolume
  "node-publish-without-id-accepted": "NodePublishVolume without a volume_id is OK",
  "node-publish-without-target-accepted": "NodePublishVolume without a target_path is OK",
  "node-publish-without-capability-accepted": "NodePublishVolume without a volume_capability is OK",
  "node-publish-unknown-volume-accepted": "NodePublishVolume of a volume that is not there is OK",
  "node-publish-relative-path-accepted": "NodePublishVolume takes a relative target_path",
  "node-publish-unstaged-accepted": "NodePublishVolume of a volume that is not staged is OK",
  "node-publish-not-idempotent": "NodePublishVolume repeated with equal arguments is ALREADY_EXISTS",
  "node-publish-incompatible-repeat-accepted":
    "NodePublishVolume repeated at the same path with other arguments is OK",
  "single-writer-published-twice":
    "NodePublishVolume of a SINGLE_NODE_SINGLE_WRITER volume at a second path is OK",
  "multi-writer-refused": "NodePublishVolume of a SINGLE_NODE_MULTI_WRITER volume at a second path fails",
  "node-publish-ignores-readonly": "NodePublishVolume with readonly gives a volume that can be written to",
  "node-publish-leaves-target-empty": "NodePublishVolume is OK but makes nothing at the target_path",
  "node-unpublish-without-id-accepted": "NodeUnpublishVolume without a volume_id is OK",
  "node-unpublish-without-target-accepted": "NodeUnpublishVolume without a target_path is OK",
  "node-unpublish-not-idempotent": "NodeUnpublishVolume of a volume that is not published is INTERNAL",
  "node-unpublish-leaves-target": "NodeUnpublishVolume leaves a directory at the target_path",

  // NodeGetVolumeStats, NodeExpandVolume
  "stats-without-id-accepted": "NodeGetVolumeStats without a volume_id is OK",
  "stats-without-path-accepted": "NodeGetVolumeStats without a volume_path is OK",
  "stats-unknown-volume-accepted": "NodeGetVolumeStats of a volume that is not there is OK",
  "stats-unknown-path-accepted": "NodeGetVolumeStats at a path where the volume is not is OK",
  "stats-without-usage": "NodeGetVolumeStats answers no usage",
  "stats-unit-unknown": "NodeGetVolumeStats answers usage of unit UNKNOWN",
  "stats-used-negative": "NodeGetVolumeStats answers negative usage",
  "stats-without-condition": "NodeGetVolumeStats answers no volume_condition, though it is declared",
  "node-expand-without-id-accepted": "NodeExpandVolume without a volume_id is OK",
  "node-expand-without-path-accepted": "NodeExpandVolume without a volume_path is OK",
  "node-expand-unknown-volume-accepted": "NodeExpandVolume of a volume that is not there is OK",
  "node-expand-unknown-path-accepted": "NodeExpandVolume at a path where the volume is not is OK",
  "node-expand-below-required": "NodeExpandVolume answers less than required_bytes",
} as const;

/** The name of a fault. */
export type FaultName = keyof typeof faultDescriptions;

/** All names, in the order of the services. */
export const faultNames = Object.keys(faultDescriptions) as readonly FaultName[];

/** Whether there is a fault of this name. */
export function isFaultName(name: string): name is FaultName {
  return Object.hasOwn(faultDescriptions, name);
}
