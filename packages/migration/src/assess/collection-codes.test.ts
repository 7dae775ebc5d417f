import { KubeApiError, type KubeClient, type KubeObject, type Resource } from "@longshore/kube";
import { expect, it } from "vitest";
import { assess } from "./assess.ts";
import { collectCluster } from "./collect-cluster.ts";
import { collectManifests } from "./collect-manifests.ts";
import type { Suppression } from "./suppressions.ts";
import { collectionCodes } from "./testing/collection-codes.ts";
import { assessed, csiNode, driver } from "./testing/sound-cluster.ts";

const now = new Date("2026-01-01T12:00:00Z");
const codesOf = ({ findings }: ReturnType<typeof assess>) => findings.map(({ code }) => code);

/** A server that has nothing, and refuses to list the kind. */
async function refusing(kind?: string): Promise<string[]> {
  const list = async (resource: Resource<KubeObject>) => {
    if (resource.kind !== kind) return { items: [], resourceVersion: "1" };
    throw new KubeApiError({
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      code: 403,
      message: "forbidden",
    });
  };
  const kube = { list } as unknown as KubeClient;
  const { signal } = new AbortController();
  return codesOf(assess(await collectCluster({ clock: { now: () => now }, kube }, { signal })));
}

async function inDump(...kinds: readonly string[]): Promise<string[]> {
  const text = kinds
    .map((kind) => {
      const apiVersion = kind === "CSINode" ? "storage.k8s.io/v1" : "v1";
      return JSON.stringify({ apiVersion, kind, metadata: { name: "x" }, spec: {} });
    })
    .join("\n");
  async function* bytes() {
    yield Buffer.from(text);
  }
  return codesOf(assess(await collectManifests([{ name: "dump", bytes: bytes() }], { now })));
}

/** The sound cluster, in which a suppression of an older finding ends on the day. */
function suppressedUntil(until: string): string[] {
  const suppression: Suppression = { code: "LS1105", object: "*", reason: "known", until };
  return codesOf(assessed([], { suppressions: [suppression] }));
}

type Case = readonly [code: string, raises: () => unknown, not: () => unknown];
const cases: readonly Case[] = [
  ["LS1001", () => refusing("CSINode"), () => refusing()],
  [
    "LS1002",
    () => inDump("Node", "Pod", "CSINode", "PersistentVolume"),
    () => inDump("Node", "Pod", "CSINode", "PersistentVolume", "PersistentVolumeClaim"),
  ],
  ["LS1006", () => suppressedUntil("2025-12-31"), () => suppressedUntil("2026-01-01")],
  [
    "LS1202",
    () => codesOf(assessed([])),
    () =>
      codesOf(
        assessed([csiNode("n1", [driver])], {
          without: ["PersistentVolume pv1", "PersistentVolumeClaim c1"],
        }),
      ),
  ],
];

it.each(cases)("%s is raised by its cause, and not by what is close to it", async (code, raises, not) => {
  expect(await raises()).toContain(code);
  expect(await not()).not.toContain(code);
});

it("all of them have a case", () => {
  expect(cases.map(([code]) => code)).toEqual(collectionCodes);
});
