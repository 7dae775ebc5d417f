/** The reference driver keeps the contract, and each of its faults is seen by the conformance suite. */
import { type CheckResult, conformanceChecks, runConformance } from "@longshore/conformance";
import { faultTable } from "@longshore/testing/conformance";
import { describe, expect, test } from "vitest";
import { never } from "../testing/cloud-fixture.ts";
import { type ConformanceWorld, conformanceWorld } from "../testing/conformance-world.ts";
import { faultWitnesses, unseenFaults } from "../testing/fault-witnesses.ts";
import { driverKind, driverKinds } from "./driver-kinds.ts";
import { faultNames } from "./faults/index.ts";

const ids: readonly string[] = conformanceChecks.map(({ id }) => id);

function run({ clock, env, options }: ConformanceWorld, select: (id: string) => boolean = () => true) {
  return clock.run(runConformance(env, { ...options, select }, never));
}

const messagesOf = (results: readonly CheckResult[], outcome: CheckResult["outcome"]) =>
  results.filter((result) => result.outcome === outcome).map(({ id, message }) => `${id}: ${message}`);

test("it passes all checks, but for those that are for lesser drivers", async () => {
  const world = await conformanceWorld();
  const { results, leftovers } = await run(world);
  expect(messagesOf(results, "failed")).toEqual([]);
  expect(leftovers).toEqual([]);
  expect(messagesOf(results, "skipped")).toEqual([
    "identity.plugin-capabilities.offline-expansion: the driver does not declare VOLUME_EXPANSION_OFFLINE (GetPluginCapabilities)",
    "controller.capabilities.undeclared-refused: every capability is declared",
    "controller.create-volume.no-topology: for plugins without VOLUME_ACCESSIBILITY_CONSTRAINTS only",
    "controller.create-volume.source-undeclared: for drivers without CLONE_VOLUME only",
    "controller.expand-volume.offline-only: the driver does not declare VOLUME_EXPANSION_OFFLINE (GetPluginCapabilities)",
    "node.capabilities.undeclared-refused: every capability is declared",
  ]);
  for (const dir of ["/staging", "/target"]) expect(await world.host.readDirectory(dir)).toEqual([]);
});

test.each(Object.keys(driverKinds))("it passes under the name of %s", async (driverName) => {
  const world = await conformanceWorld([], driverName);
  const { results, leftovers } = await run(world);
  expect(messagesOf(results, "failed")).toEqual([]);
  expect(leftovers).toEqual([]);
  const { topologyKey } = driverKind(driverName);
  const withoutTopology = results.find(({ id }) => id === "controller.create-volume.no-topology");
  expect(withoutTopology?.outcome).toBe(topologyKey === undefined ? "passed" : "skipped");
  for (const dir of ["/staging", "/target"]) expect(await world.host.readDirectory(dir)).toEqual([]);
});

/** The checks and those that they build on. */
function withEarlier(wanted: readonly string[]): ReadonlySet<string> {
  const chosen = new Set<string>();
  const choose = (id: string) => {
    if (chosen.has(id)) return;
    chosen.add(id);
    conformanceChecks.find((check) => check.id === id)?.after?.forEach(choose);
  };
  wanted.forEach(choose);
  return chosen;
}

describe("a fault", () => {
  test("is seen, or there is a reason why it cannot be", () => {
    const known = new Set([
      ...Object.keys(faultWitnesses),
      ...Object.keys(unseenFaults),
      "every-failure-internal",
    ]);
    expect(faultNames.filter((name) => !known.has(name))).toEqual([]);
    expect(Object.keys(faultWitnesses).length).toBeGreaterThan(40);
    const few = Object.values(faultWitnesses).filter((witnesses) => witnesses.length <= 3);
    expect(few.length).toBeGreaterThan(100);
  });

  test.each(Object.entries(faultWitnesses))(
    "%s is seen by the checks of its rule",
    async (name, witnesses) => {
      const world = await conformanceWorld([name as (typeof faultNames)[number]]);
      const chosen = withEarlier(witnesses);
      // Some checks look at the calls of all others.
      const needsAll = witnesses.some((id) => id.startsWith("protocol."));
      const isChosen = (id: string) => needsAll || chosen.has(id);
      const { results } = await run(world, isChosen);
      expect(
        results.filter(({ outcome }) => outcome === "failed" || outcome === "warned").map(({ id }) => id),
      ).toEqual(witnesses);
    },
  );

  test("that spoils every refusal is seen by a hundred checks", async () => {
    const { failed } = await run(await conformanceWorld(["every-failure-internal"]));
    expect(failed).toBeGreaterThanOrEqual(100);
  });
});

test("no check is without a fault that it sees, in this driver or in the fake one of the suite's own tests", () => {
  const seen = new Set([...Object.values(faultWitnesses).flat(), ...Object.keys(faultTable)]);
  const unable = ids.filter((id) => !seen.has(id));
  expect(unable, `${unable.length} checks that no fault makes fail`).toEqual([]);
});
