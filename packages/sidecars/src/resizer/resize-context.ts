/** What the controller over the sizes of claims works with. */
import type { EventRecorder, Informer, PersistentVolume, PersistentVolumeClaim } from "@longshore/kube";
import type { Driver, SidecarEnv } from "../common/sidecar-env.ts";
import type { ClaimMemory } from "./claim-memory.ts";
import type { ResizeRules } from "./observed-resize.ts";
import type { PodUse } from "./pod-use.ts";

/** Seams, caches and memory. */
export interface ResizeContext {
  readonly env: SidecarEnv;
  readonly driver: Driver;
  readonly events: Pick<EventRecorder, "event">;
  readonly claims: Pick<Informer<PersistentVolumeClaim>, "get">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get">;
  readonly memory: ClaimMemory;
  /** Which pods use a claim; undefined: a driver that refuses volumes in use is simply asked again. */
  readonly podUse: PodUse | undefined;
  /** The driver expands on nodes only. */
  readonly trivial: boolean;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  readonly rules: ResizeRules;
}
