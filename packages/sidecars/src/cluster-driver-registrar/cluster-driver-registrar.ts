/**
 * The cluster-driver-registrar: keeps a CSIDriver object for the driver while it runs (docs/behaviour/sidecars.md 7). Made for
 * drivers whose manifests bring none.
 *
 * Invariant: an object that it did not make is never changed and never deleted.
 */
import { type KubeEnv, resources, type Source, startController } from "@longshore/kube";
import { type Component, withDeadline } from "@longshore/runtime";
import { type Serve, startAlone } from "../common/sidecar.ts";
import type { SidecarEnv } from "../common/sidecar-env.ts";
import { csiDriverObject, isOwnCsiDriver } from "./csi-driver-object.ts";
import { csiDriverSteps, deleteCsiDriver } from "./csi-driver-steps.ts";

/** How the registrar works. */
export interface ClusterDriverRegistrarOptions {
  /**
   * The version of pod information that the driver wants with NodePublishVolume (`--pod-info-mount-version`): `v1`, or
   * none when left out or empty.
   */
  readonly podInfoMountVersion?: string;
  /** Pause between looks at the object, in milliseconds; default 2 min. */
  readonly checkMs?: number;
  /** Whether the object goes when the registrar ends; default true. */
  readonly deleteOnExit?: boolean;
  /** Deadline of a CSI call, in milliseconds; default 10 s. */
  readonly timeoutMs?: number;
}

/** An option has a value that means nothing. */
export class ClusterDriverRegistrarOptionError extends Error {
  override readonly name = "ClusterDriverRegistrarOptionError";
}

const deleteWithinMs = 5000;

/** Starts the registrar of the driver behind `env.csi` alone. @throws ClusterDriverRegistrarOptionError */
export function startClusterDriverRegistrar(
  env: SidecarEnv,
  options: ClusterDriverRegistrarOptions = {},
): Component {
  podInfoOnMount(options);
  return startAlone(env, "cluster-driver-registrar", serveCsiDriver, options);
}

/** Keeps the CSIDriver object of the driver. Key: the driver's name. */
const serveCsiDriver: Serve<ClusterDriverRegistrarOptions> = async (sidecar, options, scope) => {
  const { driver } = sidecar;
  const { checkMs = 120_000, deleteOnExit = true } = options;
  const logger = sidecar.env.logger.child({ driver: driver.name, sidecar: "cluster-driver-registrar" });
  const env = { ...sidecar.env, logger };
  const wanted = csiDriverObject(driver.name, {
    attachRequired: driver.capabilities.controller.has("PUBLISH_UNPUBLISH_VOLUME"),
    podInfoOnMount: podInfoOnMount(options),
  });
  // Before the controller, which is stopped first: nothing makes the object again.
  if (deleteOnExit) scope.own({ stop: () => deleteAtEnd(env, driver.name) });
  scope.own(
    startController(env, {
      name: "cluster-driver-registrar",
      sources: [inPeriods(driver.name)],
      resyncMs: checkMs,
      // A look that failed is repeated when the next one is due.
      backoff: { initialMs: checkMs, maximumMs: checkMs },
      ...csiDriverSteps(env, wanted),
    }),
  );
};

/** The key at the start and at each resync: one object that hardly changes needs no watch. */
function inPeriods(key: string): Source {
  return {
    caches: [],
    subscribe({ wake }) {
      wake(key);
      return () => {};
    },
    resync: (wake) => wake(key),
  };
}

/** Deletes the object if the registrar made it; a failure is logged. */
async function deleteAtEnd(env: KubeEnv, name: string): Promise<void> {
  // A signal of its own: that of the scope has aborted by now.
  const { signal } = new AbortController();
  try {
    await withDeadline(env.clock, deleteWithinMs, signal, async (limited) => {
      const stored = await env.kube.get(resources.csiDrivers, { name }, { signal: limited });
      if (stored !== undefined && isOwnCsiDriver(stored)) await deleteCsiDriver(env, stored, limited);
    });
  } catch (error) {
    env.logger.warn("the CSIDriver object could not be deleted", { error });
  }
}

/** @throws ClusterDriverRegistrarOptionError for a version that does not exist */
function podInfoOnMount({ podInfoMountVersion = "" }: ClusterDriverRegistrarOptions): boolean {
  if (podInfoMountVersion === "") return false;
  if (podInfoMountVersion === "v1") return true;
  throw new ClusterDriverRegistrarOptionError(
    `pod-info-mount-version "${podInfoMountVersion}" does not exist: say "v1" or leave it out`,
  );
}
