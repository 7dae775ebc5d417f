/** What requests for volumes are made with. */
import type { CSINode, Node } from "@longshore/kube";
import type { TopologyMemory } from "@longshore/storage";
import type { SourceContext } from "../sources/content-source.ts";
import type { TopologyView } from "../topology/topology-view.ts";

/** Settings that decide what volumes look like; the defaults are in `provisioner.ts`. */
export interface VolumeSettings {
  /** Written into every volume's attributes, to identify the provisioner that created it. */
  readonly identity: string;
  readonly volumeNamePrefix: string;
  /** −1: the whole uid. */
  readonly volumeNameUuidLength: number;
  readonly strictTopology: boolean;
  readonly immediateTopology: boolean;
  readonly defaultFsType: string;
  /** Passes the names of claim and volume to the driver. */
  readonly extraCreateMetadata: boolean;
  /** A volume that is ReadOnlyMany only is published read-only. */
  readonly controllerPublishReadOnly: boolean;
  /** Volumes may be made from another namespace's sources (gate CrossNamespaceVolumeDataSource). */
  readonly crossNamespaceDataSource: boolean;
  /** `spec.volumeAttributesClassName` is heeded (gate VolumeAttributesClass). */
  readonly volumeAttributesClass: boolean;
}

/** What the request is made from besides claim and class. */
export interface RequestContext extends SourceContext {
  readonly settings: VolumeSettings;
  readonly csiNodes: () => readonly CSINode[];
  readonly nodes: () => readonly Node[];
  /** What an attempt would see of the cluster's topology now; left out: nodes and CSINodes are gone through. */
  readonly topologyNow?: TopologyView["now"];
  /**
   * By claim uid, what the last attempt saw of the cluster's topology, so that the next asks for the same; dropped
   * once the driver is certainly not working on the claim (docs/behaviour/sidecars.md 2.3).
   */
  readonly topologies: Map<string, SeenTopology>;
}

/** What an attempt saw; void for another node. */
export interface SeenTopology {
  readonly selectedNode: string | undefined;
  readonly memory: TopologyMemory;
}
