/** What `longshore driver deploy` writes into manifests, `longshore run` understands. */
import { allObjects, planDeployment, renderDeployment } from "@longshore/deployment";
import { deployForms } from "@longshore/testing/deployment";
import { expect, test } from "vitest";
import { controllerFlags } from "./controller-sidecars.ts";
import type { FlagTable } from "./flag-table.ts";
import { readGoArguments } from "./read-go-arguments.ts";
import { clusterDriverRegistrarFlags } from "./register-cluster-driver-registrar.ts";
import { livenessProbeFlags } from "./register-liveness-probe.ts";
import { nodeDriverRegistrarFlags } from "./register-node-driver-registrar.ts";
import { snapshotControllerFlags } from "./register-snapshot-controller.ts";
import { controllerSidecarNames, controllerSidecars, togetherFlags } from "./together-options.ts";

const tables: Readonly<Record<string, FlagTable>> = {
  ...Object.fromEntries(
    controllerSidecarNames.map((name) => [name, { ...controllerSidecars[name].flags, ...controllerFlags }]),
  ),
  sidecars: togetherFlags,
  "snapshot-controller": snapshotControllerFlags,
  "node-driver-registrar": nodeDriverRegistrarFlags,
  "cluster-driver-registrar": clusterDriverRegistrarFlags,
  "liveness-probe": livenessProbeFlags,
};

/** The argument lists of `longshore run …` in an object. */
function commandLines(value: unknown): string[][] {
  if (typeof value !== "object" || value === null) return [];
  const { args } = value as { readonly args?: readonly string[] };
  const own = Array.isArray(args) && args[0] === "run" ? [[...args]] : [];
  return [...own, ...Object.values(value).flatMap(commandLines)];
}

test("every form of a deployment", () => {
  const seen = new Set<string>();
  for (const [form, options] of Object.entries(deployForms)) {
    for (const { object } of allObjects(renderDeployment(planDeployment(options)))) {
      for (const [, verb = "", ...args] of commandLines(object)) {
        seen.add(verb);
        const { rest } = readGoArguments(tables[verb] ?? {}, args);
        expect(rest, `${form}: run ${verb}`).toEqual([]);
      }
    }
  }
  expect([...seen].sort()).toEqual(
    expect.arrayContaining(["liveness-probe", "node-driver-registrar", "sidecars"]),
  );
});
