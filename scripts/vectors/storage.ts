/** Vectors of names, secrets and topology: what Kubernetes and CSI components must compute alike. */
import type { CSINode, Node, PersistentVolumeSpec, TopologySelectorTerm, VolumeNodeAffinity } from "@longshore/kube";
import { VolumeCapabilitySchema } from "@longshore/csi";
import {
  accessibilityRequirements,
  attachCapability,
  attacherFinalizer,
  attachmentName,
  attachmentNameByPV,
  csiDriverNameErrors,
  csiUniqueVolumeName,
  type ElectedSidecar,
  generateVolumeName,
  inlineVolumeHandle,
  leaseName,
  pvcNameHash,
  resolveTemplate,
  type SecretKind,
  type Segments,
  secretReference,
  snapshotContentName,
  snapshotName,
  stripParameters,
  type TemplateClaim,
  type TopologyMemory,
  volumeIsAccessible,
  volumeName,
  volumeNodeAffinity,
} from "@longshore/storage";
import { messageToJson } from "./csi-json.ts";
import type { VectorGroup } from "./types.ts";

type Parameters = Readonly<Record<string, string>>;

interface TopologyInput {
  readonly driverName: string;
  readonly pvcName: string;
  readonly allowedTopologies: readonly TopologySelectorTerm[] | null;
  readonly selectedNode: string;
  readonly strictTopology: boolean;
  readonly immediateTopology: boolean;
  readonly csiNodes: readonly { readonly name: string; readonly drivers: NonNullable<CSINode["spec"]>["drivers"] }[] | null;
  readonly nodes: readonly { readonly name: string; readonly labels?: Parameters }[] | null;
  readonly cache?: TopologyMemory;
}

function topology(input: TopologyInput): unknown {
  const { requirements } = accessibilityRequirements({
    driverName: input.driverName,
    pvcName: input.pvcName,
    allowedTopologies: input.allowedTopologies ?? [],
    selectedNode: input.selectedNode === "" ? undefined : input.selectedNode,
    strictTopology: input.strictTopology,
    immediateTopology: input.immediateTopology,
    csiNodes: (input.csiNodes ?? []).map(
      ({ name, drivers }): CSINode => ({ metadata: { name }, spec: { drivers: drivers ?? [] } }),
    ),
    nodes: (input.nodes ?? []).map(({ name, labels }): Node => ({ metadata: { name, labels: { ...labels } } })),
    ...(input.cache === undefined ? {} : { memory: input.cache }),
  });
  return requirements ?? null;
}

/** The API writes a missing list of terms as `null`. */
function affinityJson(affinity: VolumeNodeAffinity | undefined): unknown {
  if (affinity === undefined) return null;
  const terms = affinity.required?.nodeSelectorTerms ?? [];
  return { required: { nodeSelectorTerms: terms.length === 0 ? null : terms } };
}

export const storageVectors: VectorGroup = {
  name: "storage",
  handlers: {
    volumeName: (i: { prefix: string; pvcUID: string; uuidLength: number }) =>
      volumeName(i.prefix, i.pvcUID, i.uuidLength),
    attachmentName: (i: { volumeHandle: string; driver: string; nodeName: string }) =>
      attachmentName(i.volumeHandle, i.driver, i.nodeName),
    attachmentNameByPV: (i: { pvName: string; nodeName: string }) => attachmentNameByPV(i.pvName, i.nodeName),
    uniqueVolumeName: (i: { driver: string; volumeHandle: string }) => csiUniqueVolumeName(i.driver, i.volumeHandle),
    finalizerName: (i: { driver: string }) => attacherFinalizer(i.driver),
    leaseName: (i: { component: ElectedSidecar; driver: string }) => leaseName(i.component, i.driver),
    csiDriverNameErrors: (i: { driver: string }) => csiDriverNameErrors(i.driver),
    snapshotName: (i: { prefix: string; snapshotUID: string; uuidLength: number }) =>
      snapshotName(i.prefix, i.snapshotUID, i.uuidLength),
    snapshotContentName: (i: { snapshotUID: string }) => snapshotContentName(i.snapshotUID),
    inlineVolumeHandle: (i: { podUID: string; volumeSpecName: string }) =>
      inlineVolumeHandle(i.podUID, i.volumeSpecName),
    generateVolumeName: (i: { clusterName: string; pvName: string; maxLength: number }) =>
      generateVolumeName(i.clusterName, i.pvName, i.maxLength),
    secretReference: (i: { kind: SecretKind; parameters: Parameters | null; pvName: string; pvc: TemplateClaim | null }) =>
      secretReference(i.kind, i.parameters ?? {}, i.pvName, i.pvc ?? undefined) ?? null,
    stripParameters: (i: { parameters: Parameters | null }) => stripParameters(i.parameters ?? {}),
    resolveTemplate: (i: { template: string; values: Parameters }) => resolveTemplate(i.template, i.values),
    accessibilityRequirements: topology,
    pvcNameHash: (i: { pvcName: string }) => pvcNameHash(i.pvcName),
    volumeNodeAffinity: (i: { accessibleTopology: readonly Segments[] | null }) =>
      affinityJson(volumeNodeAffinity(i.accessibleTopology ?? [])),
    volumeIsAccessible: (i: { nodeAffinity: VolumeNodeAffinity | null; nodeTopology: Segments | null }) =>
      volumeIsAccessible(i.nodeAffinity ?? undefined, i.nodeTopology ?? undefined),
    volumeCapability: (i: {
      pvSpec: PersistentVolumeSpec | null;
      supportsSingleNodeMultiWriter: boolean;
      defaultFSType: string;
    }) =>
      messageToJson(
        VolumeCapabilitySchema,
        attachCapability(
          i.pvSpec ?? {},
          { singleNodeMultiWriter: i.supportsSingleNodeMultiWriter },
          i.defaultFSType,
        ),
      ),
  },
};
