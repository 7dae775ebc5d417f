/**
 * What `kubectl explain` says about the storage kinds, in words of our own; other types are shown without. A
 * member's words stand under its struct, `Type.member`; those that all structs share stand under `*`.
 */

const shared: Readonly<Record<string, string>> = {
  apiVersion: "Group and version of the API that the object is written in.",
  kind: "What the object is; with apiVersion it says which fields there can be.",
  metadata: "Name, labels, owners and what else every object has.",
  fsType: "File system to mount, and to make where the device has none; ext4 for most drivers if left out.",
  readOnly: "Mount the volume for reading only.",
};

const words: Readonly<Record<string, string>> = {
  "meta.v1.ObjectMeta": "What every object has: its name, and what the server and others note about it.",
  "meta.v1.ObjectMeta.annotations": "Notes of tools and controllers; they cannot be selected by.",
  "meta.v1.ObjectMeta.creationTimestamp": "When the server stored the object first.",
  "meta.v1.ObjectMeta.deletionTimestamp":
    "Set by a delete while finalizers or a grace period hold the object; from then on it only waits to go.",
  "meta.v1.ObjectMeta.finalizers": "Who still has to clean up: the object stays until the list is empty.",
  "meta.v1.ObjectMeta.generateName":
    "A prefix from which the server makes a unique name, if name is left out.",
  "meta.v1.ObjectMeta.generation": "Counts the changes of what is desired.",
  "meta.v1.ObjectMeta.labels": "Pairs that selectors choose objects by.",
  "meta.v1.ObjectMeta.managedFields": "Which client set which fields; kept by the server.",
  "meta.v1.ObjectMeta.name": "The object's name: unique within its kind and namespace, and never changed.",
  "meta.v1.ObjectMeta.namespace": "The namespace that the name is unique in.",
  "meta.v1.ObjectMeta.ownerReferences":
    "Objects that this one belongs to: it is deleted after the last of them.",
  "meta.v1.ObjectMeta.resourceVersion":
    "Changes with every write; give it back to write only what you have read.",
  "meta.v1.ObjectMeta.uid": "Distinguishes the object from others that had its name before.",
  "meta.v1.ListMeta": "What every list has: its version, and where the next page begins.",

  "core.v1.PersistentVolume": "A piece of storage of the cluster, made by an administrator or a provisioner.",
  "core.v1.PersistentVolume.spec": "The storage behind the volume and the terms on which it is used.",
  "core.v1.PersistentVolume.status": "How far the volume is in its life; written by controllers.",
  "core.v1.PersistentVolumeSpec":
    "The storage behind a volume and the terms on which it is used; one source is set.",
  "core.v1.PersistentVolumeSpec.accessModes":
    "Ways in which the volume can be mounted: by one node or many, for writing or reading.",
  "core.v1.PersistentVolumeSpec.awsElasticBlockStore": "The storage, where it is EBS, by the in-tree plugin.",
  "core.v1.PersistentVolumeSpec.azureDisk": "A data disk of Azure, by the in-tree plugin.",
  "core.v1.PersistentVolumeSpec.azureFile": "A file share of Azure, by the in-tree plugin.",
  "core.v1.PersistentVolumeSpec.capacity": "What the volume holds; `storage` is its size.",
  "core.v1.PersistentVolumeSpec.cephfs": "A CephFS tree, by the in-tree plugin.",
  "core.v1.PersistentVolumeSpec.cinder": "A disk of OpenStack Cinder, by the in-tree plugin.",
  "core.v1.PersistentVolumeSpec.claimRef":
    "The claim that the volume is bound to; with its uid the binding holds for that claim alone.",
  "core.v1.PersistentVolumeSpec.csi": "The storage, where a CSI driver manages it.",
  "core.v1.PersistentVolumeSpec.fc": "A Fibre Channel disk.",
  "core.v1.PersistentVolumeSpec.flexVolume": "A volume of a Flexvolume driver, a program on the nodes.",
  "core.v1.PersistentVolumeSpec.flocker": "A Flocker dataset.",
  "core.v1.PersistentVolumeSpec.gcePersistentDisk": "A persistent disk of GCE, by the in-tree plugin.",
  "core.v1.PersistentVolumeSpec.glusterfs": "A Gluster volume.",
  "core.v1.PersistentVolumeSpec.hostPath": "A directory of the node; for tests on one node.",
  "core.v1.PersistentVolumeSpec.iscsi": "An iSCSI disk.",
  "core.v1.PersistentVolumeSpec.local": "A disk or directory that belongs to one node.",
  "core.v1.PersistentVolumeSpec.mountOptions":
    "Options for mount, such as ro; none of them is checked beforehand.",
  "core.v1.PersistentVolumeSpec.nfs": "An export of an NFS server.",
  "core.v1.PersistentVolumeSpec.nodeAffinity":
    "Nodes that can reach the volume; its pods are put only there.",
  "core.v1.PersistentVolumeSpec.persistentVolumeReclaimPolicy":
    "What becomes of the storage once its claim is gone: Retain, Delete or (deprecated) Recycle.",
  "core.v1.PersistentVolumeSpec.photonPersistentDisk": "A disk of Photon Controller.",
  "core.v1.PersistentVolumeSpec.portworxVolume": "A Portworx volume, by the in-tree plugin.",
  "core.v1.PersistentVolumeSpec.quobyte": "A Quobyte volume.",
  "core.v1.PersistentVolumeSpec.rbd": "A Ceph block device, by the in-tree plugin.",
  "core.v1.PersistentVolumeSpec.scaleIO": "A ScaleIO volume.",
  "core.v1.PersistentVolumeSpec.storageClassName": "The class that the volume belongs to; empty for none.",
  "core.v1.PersistentVolumeSpec.storageos": "A StorageOS volume.",
  "core.v1.PersistentVolumeSpec.volumeAttributesClassName":
    "The class of attributes that the volume has now.",
  "core.v1.PersistentVolumeSpec.volumeMode":
    "Filesystem (the default): the volume is mounted; Block: pods get the device.",
  "core.v1.PersistentVolumeSpec.vsphereVolume": "A VMDK of vSphere, by the in-tree plugin.",
  "core.v1.PersistentVolumeStatus": "How far a volume is in its life.",
  "core.v1.PersistentVolumeStatus.lastPhaseTransitionTime": "When the phase changed last.",
  "core.v1.PersistentVolumeStatus.message": "Why the volume is in its phase, for people.",
  "core.v1.PersistentVolumeStatus.phase": "Pending, Available, Bound, Released or Failed.",
  "core.v1.PersistentVolumeStatus.reason": "Why the volume failed, in one word.",

  "core.v1.PersistentVolumeClaim":
    "A request for storage: a pod uses the claim, the cluster finds or makes the volume.",
  "core.v1.PersistentVolumeClaim.spec": "What is asked for.",
  "core.v1.PersistentVolumeClaim.status": "What the claim has got; written by controllers.",
  "core.v1.PersistentVolumeClaimSpec": "What a claim asks for.",
  "core.v1.PersistentVolumeClaimSpec.accessModes": "Ways of mounting that the volume must offer.",
  "core.v1.PersistentVolumeClaimSpec.dataSource":
    "A VolumeSnapshot or another claim whose content the new volume begins with.",
  "core.v1.PersistentVolumeClaimSpec.dataSourceRef":
    "As dataSource, and open to other kinds, which a volume populator fills the volume from.",
  "core.v1.PersistentVolumeClaimSpec.resources": "The least size that will do; it may grow later.",
  "core.v1.PersistentVolumeClaimSpec.selector": "Labels that the volume must have.",
  "core.v1.PersistentVolumeClaimSpec.storageClassName":
    "The class to take the volume from: the default class if left out, none if empty.",
  "core.v1.PersistentVolumeClaimSpec.volumeAttributesClassName":
    "The class of attributes that the volume is to have.",
  "core.v1.PersistentVolumeClaimSpec.volumeMode": "Filesystem (the default) or Block.",
  "core.v1.PersistentVolumeClaimSpec.volumeName": "The volume that the claim is bound to, or is to be.",
  "core.v1.PersistentVolumeClaimStatus": "What a claim has got.",
  "core.v1.PersistentVolumeClaimStatus.accessModes": "Ways of mounting that the volume offers.",
  "core.v1.PersistentVolumeClaimStatus.allocatedResources":
    "The size that is being made ready while the volume grows.",
  "core.v1.PersistentVolumeClaimStatus.allocatedResourceStatuses":
    "How far the growing is, for each resource.",
  "core.v1.PersistentVolumeClaimStatus.capacity": "The size that the volume has.",
  "core.v1.PersistentVolumeClaimStatus.conditions": "What is under way, such as a resize.",
  "core.v1.PersistentVolumeClaimStatus.currentVolumeAttributesClassName": "The class of attributes in force.",
  "core.v1.PersistentVolumeClaimStatus.modifyVolumeStatus":
    "A change of attributes that is under way or has failed.",
  "core.v1.PersistentVolumeClaimStatus.phase": "Pending, Bound, or Lost when the volume is gone.",

  "core.v1.CSIPersistentVolumeSource": "A volume of a CSI driver.",
  "core.v1.CSIPersistentVolumeSource.controllerExpandSecretRef":
    "Secret for the driver's call that grows the volume.",
  "core.v1.CSIPersistentVolumeSource.controllerPublishSecretRef":
    "Secret for the driver's calls that attach and detach.",
  "core.v1.CSIPersistentVolumeSource.driver": "Name of the CSI driver, as its CSIDriver object is named.",
  "core.v1.CSIPersistentVolumeSource.nodeExpandSecretRef":
    "Secret for the driver's call that grows the volume on a node.",
  "core.v1.CSIPersistentVolumeSource.nodePublishSecretRef":
    "Secret for the driver's call that mounts the volume for a pod.",
  "core.v1.CSIPersistentVolumeSource.nodeStageSecretRef":
    "Secret for the driver's call that prepares the volume on a node.",
  "core.v1.CSIPersistentVolumeSource.volumeAttributes":
    "What the driver noted about the volume when it made it.",
  "core.v1.CSIPersistentVolumeSource.volumeHandle":
    "The volume's id with the driver: the same on every call, and never changed.",
  "core.v1.AWSElasticBlockStoreVolumeSource": "A disk of AWS EBS.",
  "core.v1.AWSElasticBlockStoreVolumeSource.partition": "Partition to mount; 0 or none: the whole disk.",
  "core.v1.AWSElasticBlockStoreVolumeSource.volumeID": "The disk's id: vol-…, or aws://ZONE/vol-….",
  "core.v1.GCEPersistentDiskVolumeSource": "A persistent disk of GCE.",
  "core.v1.GCEPersistentDiskVolumeSource.partition": "Partition to mount; 0 or none: the whole disk.",
  "core.v1.GCEPersistentDiskVolumeSource.pdName": "Name of the disk.",
  "core.v1.AzureDiskVolumeSource": "A data disk of Azure.",
  "core.v1.AzureDiskVolumeSource.cachingMode": "Caching on the host: None, ReadOnly or ReadWrite.",
  "core.v1.AzureDiskVolumeSource.diskName": "Name of the disk.",
  "core.v1.AzureDiskVolumeSource.diskURI": "The disk's resource id, or the URI of its blob.",
  "core.v1.AzureDiskVolumeSource.kind": "Managed, or where the blob lies: Shared or Dedicated.",
  "core.v1.AzureFilePersistentVolumeSource": "A file share of Azure.",
  "core.v1.AzureFilePersistentVolumeSource.secretName": "Secret with the account's name and key.",
  "core.v1.AzureFilePersistentVolumeSource.secretNamespace":
    "Namespace of the Secret; that of the claim if left out.",
  "core.v1.AzureFilePersistentVolumeSource.shareName": "Name of the share.",
  "core.v1.CinderPersistentVolumeSource": "A disk of OpenStack Cinder.",
  "core.v1.CinderPersistentVolumeSource.secretRef": "Secret with the parameters for OpenStack.",
  "core.v1.CinderPersistentVolumeSource.volumeID": "The disk's id in Cinder.",
  "core.v1.VsphereVirtualDiskVolumeSource": "A VMDK of vSphere.",
  "core.v1.VsphereVirtualDiskVolumeSource.storagePolicyID": "Id of the storage policy.",
  "core.v1.VsphereVirtualDiskVolumeSource.storagePolicyName": "Name of the storage policy.",
  "core.v1.VsphereVirtualDiskVolumeSource.volumePath": "Path of the VMDK: [DATASTORE] folder/name.vmdk.",
  "core.v1.FlexPersistentVolumeSource": "A volume of a Flexvolume driver.",
  "core.v1.FlexPersistentVolumeSource.driver":
    "VENDOR/DRIVER: the program's place below the plugin directory.",
  "core.v1.FlexPersistentVolumeSource.options": "Options that are passed to the driver.",
  "core.v1.FlexPersistentVolumeSource.secretRef": "Secret whose values are passed to the driver.",
  "core.v1.LocalVolumeSource": "A disk or directory of one node.",
  "core.v1.LocalVolumeSource.path": "Path on the node: a directory, or a block device.",
  "core.v1.HostPathVolumeSource": "A directory or file of the node.",
  "core.v1.HostPathVolumeSource.path": "Path on the node.",
  "core.v1.HostPathVolumeSource.type": "What must be there, or is made, before it is mounted.",
  "core.v1.NFSVolumeSource": "An export of an NFS server.",
  "core.v1.NFSVolumeSource.path": "Path that the server exports.",
  "core.v1.NFSVolumeSource.server": "Name or address of the server.",
  "core.v1.SecretReference": "A Secret, wherever it is.",
  "core.v1.SecretReference.name": "Name of the Secret.",
  "core.v1.SecretReference.namespace": "Namespace of the Secret.",
  "core.v1.VolumeNodeAffinity": "Nodes that can reach a volume.",
  "core.v1.VolumeNodeAffinity.required": "What a node must be like.",
  "core.v1.NodeSelector": "Chooses nodes: those that any of the terms chooses.",
  "core.v1.NodeSelector.nodeSelectorTerms": "Terms, of which one must hold.",
  "core.v1.NodeSelectorTerm": "Chooses nodes: all its requirements must hold.",
  "core.v1.NodeSelectorTerm.matchExpressions": "Requirements on the labels of the node.",
  "core.v1.NodeSelectorTerm.matchFields": "Requirements on the fields of the node; only metadata.name.",

  "storage.v1.StorageClass": "A kind of storage on offer: who makes volumes, with which parameters.",
  "storage.v1.StorageClass.allowVolumeExpansion": "Claims of the class may grow.",
  "storage.v1.StorageClass.allowedTopologies": "Where volumes may be made; everywhere if left out.",
  "storage.v1.StorageClass.mountOptions": "Mount options that volumes of the class get.",
  "storage.v1.StorageClass.parameters": "Parameters that are passed to the provisioner.",
  "storage.v1.StorageClass.provisioner":
    "Who makes the volumes: a CSI driver, or an in-tree plugin (kubernetes.io/…).",
  "storage.v1.StorageClass.reclaimPolicy":
    "The reclaim policy that volumes of the class get; Delete if left out.",
  "storage.v1.StorageClass.volumeBindingMode":
    "Immediate: a claim gets its volume at once; WaitForFirstConsumer: where its first pod is scheduled.",
  "core.v1.TopologySelectorTerm": "Chooses places by the labels of their nodes.",
  "core.v1.TopologySelectorTerm.matchLabelExpressions": "Labels with the values that will do.",

  "storage.v1.VolumeAttachment": "The request to attach a volume to a node, and its result.",
  "storage.v1.VolumeAttachment.spec": "Which volume, to which node, by which attacher.",
  "storage.v1.VolumeAttachment.status": "Whether it is attached; written by the attacher.",
  "storage.v1.VolumeAttachmentSpec": "Which volume is to be attached to which node.",
  "storage.v1.VolumeAttachmentSpec.attacher": "The CSI driver that is to attach the volume.",
  "storage.v1.VolumeAttachmentSpec.nodeName": "The node.",
  "storage.v1.VolumeAttachmentSpec.source": "The volume.",
  "storage.v1.VolumeAttachmentSource": "A volume: by its name, or as a pod wrote it inline.",
  "storage.v1.VolumeAttachmentSource.inlineVolumeSpec":
    "An inline volume of a pod, as migration translated it.",
  "storage.v1.VolumeAttachmentSource.persistentVolumeName": "Name of the PersistentVolume.",
  "storage.v1.VolumeAttachmentStatus": "The result of the attachment.",
  "storage.v1.VolumeAttachmentStatus.attachError": "Why attaching failed last.",
  "storage.v1.VolumeAttachmentStatus.attached": "The volume is attached to the node.",
  "storage.v1.VolumeAttachmentStatus.attachmentMetadata":
    "What the driver returned about the attachment, for the node.",
  "storage.v1.VolumeAttachmentStatus.detachError": "Why detaching failed last.",
  "storage.v1.VolumeError": "An error of a driver.",
  "storage.v1.VolumeError.errorCode": "The gRPC code of the error.",
  "storage.v1.VolumeError.message": "What the driver said; without secrets.",
  "storage.v1.VolumeError.time": "When it happened.",

  "storage.v1.CSINode": "The CSI drivers of one node; named like the Node.",
  "storage.v1.CSINode.spec": "The drivers.",
  "storage.v1.CSINodeSpec": "The CSI drivers of a node.",
  "storage.v1.CSINodeSpec.drivers": "One entry a driver that has registered with the kubelet.",
  "storage.v1.CSINodeDriver": "A CSI driver on a node.",
  "storage.v1.CSINodeDriver.allocatable": "How many volumes of the driver the node takes.",
  "storage.v1.CSINodeDriver.name": "Name of the driver.",
  "storage.v1.CSINodeDriver.nodeID": "The name that the driver has for the node.",
  "storage.v1.CSINodeDriver.topologyKeys":
    "Labels of the node that say which volumes of the driver it can reach.",
  "storage.v1.VolumeNodeResources": "Limits of a driver on a node.",
  "storage.v1.VolumeNodeResources.count": "The most volumes at a time; no limit if left out.",

  "storage.v1.CSIDriver": "What the cluster has to know of a CSI driver; named like the driver.",
  "storage.v1.CSIDriver.spec": "How the driver is to be called.",
  "storage.v1.CSIDriverSpec": "How a CSI driver is to be called.",
  "storage.v1.CSIDriverSpec.attachRequired": "Volumes must be attached to a node first; true if left out.",
  "storage.v1.CSIDriverSpec.fsGroupPolicy": "Whether a volume's files are given to the pod's fsGroup.",
  "storage.v1.CSIDriverSpec.nodeAllocatableUpdatePeriodSeconds":
    "Interval at which the driver is asked for its limits again.",
  "storage.v1.CSIDriverSpec.podInfoOnMount":
    "The driver receives the name of the pod that a volume is mounted for.",
  "storage.v1.CSIDriverSpec.requiresRepublish":
    "The driver is called again and again while a volume is mounted.",
  "storage.v1.CSIDriverSpec.seLinuxMount": "Volumes can be mounted with -o context.",
  "storage.v1.CSIDriverSpec.storageCapacity":
    "The scheduler looks at CSIStorageCapacity objects of the driver.",
  "storage.v1.CSIDriverSpec.tokenRequests": "Service account tokens that the driver gets with each mount.",
  "storage.v1.CSIDriverSpec.volumeLifecycleModes": "Persistent, Ephemeral (inline in pods), or both.",

  "storage.v1.CSIStorageCapacity":
    "How much a driver can still make, for one class in one part of the cluster.",
  "storage.v1.CSIStorageCapacity.capacity": "What is free.",
  "storage.v1.CSIStorageCapacity.maximumVolumeSize": "The largest volume that can be made.",
  "storage.v1.CSIStorageCapacity.nodeTopology": "The nodes that can reach such volumes.",
  "storage.v1.CSIStorageCapacity.storageClassName": "The class.",

  "storage.v1.VolumeAttributesClass": "Attributes of volumes that can be changed while they are in use.",
  "storage.v1.VolumeAttributesClass.driverName": "The CSI driver that knows the attributes.",
  "storage.v1.VolumeAttributesClass.parameters": "The attributes and their values.",
};

/** The words for a struct, or for one of its members. */
export function wordsOf(struct: string, member?: string): string | undefined {
  if (member === undefined) return words[struct];
  const own = words[`${struct}.${member}`];
  if (own !== undefined) return own;
  const isTop = member === "apiVersion" || member === "kind" || member === "metadata";
  return isTop ? shared[member] : struct.endsWith("VolumeSource") ? shared[member] : undefined;
}
