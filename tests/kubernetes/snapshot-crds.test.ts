/** The definitions of the snapshot kinds that Longshore ships, on the real kube-apiserver. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readDefinitions } from "../../packages/apiserver/src/http/read-definitions.ts";
import { type ControlPlane, eventually, startControlPlane } from "./support/index.ts";

describe("the definitions of snapshots", () => {
  let plane: ControlPlane;

  beforeAll(async () => {
    plane = await startControlPlane();
  });
  afterAll(() => plane.stop());

  it("are taken and established by the real API server, and make snapshots possible", async () => {
    const path = fileURLToPath(new URL("../../packages/storage/crds/", import.meta.url));
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (const definition of await readDefinitions([path])) {
      const { status, body } = await plane.call("POST", definitions, definition);
      expect(status, JSON.stringify(body)).toBe(201);
      const name = definition.metadata?.name ?? "";
      const established = await eventually(`${name} is established`, async () => {
        const { body: stored } = await plane.call("GET", `${definitions}/${name}`);
        const conditions: readonly { type: string; status: string }[] = stored.status.conditions ?? [];
        return conditions.some((c) => c.type === "Established" && c.status === "True")
          ? conditions
          : undefined;
      });
      expect(established.map((c) => c.type)).not.toContain("NonStructuralSchema");
    }
    const snapshots = "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots";
    const snapshot = {
      apiVersion: "snapshot.storage.k8s.io/v1",
      kind: "VolumeSnapshot",
      metadata: { name: "s" },
      spec: { source: { persistentVolumeClaimName: "data" } },
    };
    await eventually("snapshots are served", async () => (await plane.call("GET", snapshots)).status === 200);
    expect((await plane.call("POST", snapshots, snapshot)).status).toBe(201);
    const bad = { ...snapshot, metadata: { name: "t" }, spec: { source: {} } };
    expect((await plane.call("POST", snapshots, bad)).status).toBe(422);
  });
});
