/**
 * Keeps the number of volumes that this node can have of a driver current in its CSINode, where the driver's CSIDriver asks for
 * that: other programs of the machine may take places of disks. Source: docs/behaviour/csi-plugin.md 16.
 *
 * Invariant: a driver that has deregistered does not get its entry back.
 */
import type { CsiConnector } from "@longshore/csi";
import { type CSIDriver, forResource, type Informer, settled, startController } from "@longshore/kube";
import type { Component, RuntimeEnv } from "@longshore/runtime";
import type { RegisteredCsiDrivers } from "../../plugins/csi/registered-csi-drivers.ts";
import type { CsiNodeWriter } from "./csi-node-writer.ts";
import { decideLimitStep, type LimitStep, type ObservedLimit } from "./decide-limit-step.ts";
import { readDriverInfo } from "./driver-info.ts";

/** What it works with. */
export interface DriverLimitsParts {
  readonly registered: RegisteredCsiDrivers;
  readonly csiDrivers: Informer<CSIDriver>;
  readonly csiNode: Pick<CsiNodeWriter, "setDriver">;
}

/** What releases after those of kubernetes-types have in `spec`. */
interface LaterFields {
  readonly nodeAllocatableUpdatePeriodSeconds?: number;
}

function periodOf(driver: CSIDriver | undefined): number | undefined {
  return (driver?.spec as LaterFields | undefined)?.nodeAllocatableUpdatePeriodSeconds;
}

/** Starts it; it works until it is stopped. */
export function startDriverLimits(
  env: RuntimeEnv & { readonly connector: CsiConnector },
  { registered, csiDrivers, csiNode }: DriverLimitsParts,
): Component {
  const nextMs = new Map<string, number>();
  const controller = startController<ObservedLimit, LimitStep>(env, {
    name: "node_driver_limits",
    sources: [
      forResource(csiDrivers),
      {
        caches: [],
        subscribe({ wake }) {
          // A driver that is gone is woken too, so that it is forgotten.
          const wakeAll = () => {
            for (const name of new Set([...registered.names(), ...nextMs.keys()])) wake(name);
          };
          wakeAll();
          return registered.onChange(wakeAll);
        },
      },
    ],
    observe: (name) => ({
      nowMs: env.clock.monotonicMs(),
      endpoint: registered.get(name)?.endpoint,
      periodSeconds: periodOf(csiDrivers.get(name)),
      nextMs: nextMs.get(name),
    }),
    decide: decideLimitStep,
    actions: {
      forget(_step, _observed, { key }) {
        nextMs.delete(key);
        return settled;
      },
      schedule({ atMs }, observed, { key }) {
        nextMs.set(key, atMs);
        return { observed: { ...observed, nextMs: atMs } };
      },
      wait: ({ ms }) => ({ requeueAfterMs: ms }),
      async ask({ endpoint, againAtMs }, observed, { key, signal }) {
        // Now, not when it has answered: a driver that fails is not asked more often.
        nextMs.set(key, againAtMs);
        const info = await readDriverInfo(env, endpoint, signal);
        if (registered.get(key)?.endpoint === endpoint && info.nodeID !== "") {
          await csiNode.setDriver(key, info, signal);
        }
        return { observed: { ...observed, nextMs: againAtMs } };
      },
    },
  });
  return controller;
}
