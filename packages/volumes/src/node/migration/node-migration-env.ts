/** What the node migration works with. */
import type { EventRecorder, KubeClient } from "@longshore/kube";
import type { Host, RuntimeEnv } from "@longshore/runtime";
import type { CsiNodeWriter } from "../csi-node/csi-node-writer.ts";
import type { PathsInForce } from "./paths-in-force.ts";

/** Seams, what it changes, and where it reports. */
export interface NodeMigrationEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly nodeName: string;
  /** The kubelet root directory. */
  readonly rootDir: string;
  readonly paths: PathsInForce;
  readonly csiNode: CsiNodeWriter;
  readonly events: Pick<EventRecorder, "event">;
  /** Called when error or condition changed. */
  readonly onChange: () => void;
}
