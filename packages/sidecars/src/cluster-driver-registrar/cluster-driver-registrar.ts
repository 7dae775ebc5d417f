/**
 * The cluster-driver-registrar: keeps a CSIDriver object for the driver while it runs (docs/behaviour/sidecars.md 7). Made for
 * drivers whose manifests bring none.
 *
 * Invariant: an object that it did not make is never changed and never deleted.
 */
import {
  type CallOptions,
  type CSIDriver,
  isAlreadyExists,
  isConflict,
  resources,
  type Stored,
} from "@longshore/kube";
import { assertNever, type Component, periodically, withDeadline } from "@longshore/runtime";
import { type Serve, startAlone } from "../common/sidecar.ts";
import type { SidecarEnv } from "../common/sidecar-env.ts";
import { csiDriverObject, decideCsiDriverStep, isOwnCsiDriver } from "./csi-driver-step.ts";

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

/** Keeps the CSIDriver object of the driver. */
const serveCsiDriver: Serve<ClusterDriverRegistrarOptions> = async (sidecar, options, scope) => {
  const { env, driver } = sidecar;
  const logger = env.logger.child({ driver: driver.name, sidecar: "cluster-driver-registrar" });
  const wanted = csiDriverObject(driver.name, {
    attachRequired: driver.capabilities.controller.has("PUBLISH_UNPUBLISH_VOLUME"),
    podInfoOnMount: podInfoOnMount(options),
  });
  if (options.deleteOnExit ?? true) {
    scope.own({
      stop: () =>
        // A signal of its own: that of the scope has aborted by now.
        withDeadline(env.clock, deleteWithinMs, new AbortController().signal, (signal) =>
          deleteOwn(env, driver.name, signal),
        ).catch((error) => logger.warn("the CSIDriver object could not be deleted", { error })),
    });
  }
  let reported = "";
  scope.spawn((loopSignal) =>
    periodically(
      { ...env, logger },
      { name: "keeping the CSIDriver object", periodMs: options.checkMs ?? 120_000 },
      loopSignal,
      async (signal) => {
        const differing = await ensureCsiDriver(env, wanted, signal);
        // Only an administrator can put it right, so it is not repeated at each look.
        if (differing.length > 0 && differing.join() !== reported) {
          logger.error(
            `CSIDriver "${driver.name}" is not as the driver needs it (spec.${differing.join(", spec.")}): delete it, or correct the manifest that creates it`,
          );
        }
        reported = differing.join();
      },
    ),
  );
};

/** One pass. @returns the fields in which an object of another owner is not as it should be */
async function ensureCsiDriver(
  env: SidecarEnv,
  wanted: CSIDriver,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const name = wanted.metadata?.name ?? "";
  const stored = await env.kube.get(resources.csiDrivers, { name }, { signal });
  const step = decideCsiDriverStep(stored, wanted);
  switch (step.kind) {
    case "none":
      return [];
    case "differs":
      return step.fields;
    case "create":
      await create(env, wanted, { signal });
      return [];
    case "replace":
      if (stored !== undefined) await deleteExactly(env, stored, signal);
      await create(env, wanted, { signal });
      return [];
    default:
      return assertNever(step);
  }
}

async function create(env: SidecarEnv, wanted: CSIDriver, options: CallOptions): Promise<void> {
  try {
    await env.kube.create(resources.csiDrivers, wanted, options);
    env.logger.info("CSIDriver object made", { driver: wanted.metadata?.name });
  } catch (error) {
    // Another client created it first: the next pass compares.
    if (!isAlreadyExists(error)) throw error;
  }
}

async function deleteOwn(env: SidecarEnv, name: string, signal: AbortSignal): Promise<void> {
  const stored = await env.kube.get(resources.csiDrivers, { name }, { signal });
  if (stored !== undefined && isOwnCsiDriver(stored)) await deleteExactly(env, stored, signal);
}

/** Deletes this very object; one that was made in its place meanwhile stays. */
async function deleteExactly(env: SidecarEnv, stored: Stored<CSIDriver>, signal: AbortSignal): Promise<void> {
  const { name, uid, resourceVersion } = stored.metadata;
  try {
    await env.kube.delete(resources.csiDrivers, { name }, { signal, uid, resourceVersion });
  } catch (error) {
    if (!isConflict(error)) throw error;
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
