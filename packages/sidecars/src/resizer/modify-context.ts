/** What the controller over the attributes of claims works with. */
import type {
  EventRecorder,
  Informer,
  PersistentVolume,
  PersistentVolumeClaim,
  VolumeAttributesClass,
} from "@longshore/kube";
import type { Driver, SidecarEnv } from "../common/sidecar-env.ts";
import type { ClaimMemory } from "./claim-memory.ts";
import type { ModifyRules } from "./observed-modify.ts";

/** Seams, caches and memory. */
export interface ModifyContext {
  readonly env: SidecarEnv;
  readonly driver: Driver;
  readonly events: Pick<EventRecorder, "event">;
  readonly claims: Pick<Informer<PersistentVolumeClaim>, "get">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get">;
  readonly classes: Pick<Informer<VolumeAttributesClass>, "get">;
  readonly memory: ClaimMemory;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  readonly rules: ModifyRules;
}
