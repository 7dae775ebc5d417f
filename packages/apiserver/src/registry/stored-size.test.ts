import { describe, expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import { asker } from "../testing/ask.ts";
import { aServer } from "../testing/world.ts";

const { server } = aServer();
const { ask, outcome } = asker(server, adminUser);
ask("create", "api/v1/namespaces", { metadata: { name: "a" } });

/** A ConfigMap whose owners take about so many bytes. */
const owned = (name: string, bytes: number) => ({
  metadata: {
    name,
    ownerReferences: Array.from({ length: 10 }, (_, i) => ({
      apiVersion: "v1",
      kind: "x".repeat(bytes / 10),
      name: `n${i}`,
      uid: `u${i}`,
    })),
  },
});

describe("the size of an object that is stored", () => {
  it("is what etcd takes in one request", () => {
    expect(outcome("create", "api/v1/namespaces/a/configmaps", owned("small", 1_500_000))).toBe("ok");
    expect(outcome("create", "api/v1/namespaces/a/configmaps", owned("large", 1_600_000))).toMatch(
      /^500 etcdserver: request is too large: configmaps "large" takes 160\d+ bytes, and at most 1572864/,
    );
    expect(outcome("get", "api/v1/namespaces/a/configmaps/large")).toMatch(/^404/);
  });

  it("is that of the form in which the reference stores it", () => {
    // Long in JSON, which has the names of all members again and again, and short in protobuf.
    const tolerations = Array.from({ length: 20_000 }, (_, i) => ({
      key: `key-${i}`,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 5,
    }));
    const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "x" }], tolerations } };
    expect(JSON.stringify(pod).length).toBeGreaterThan(1.5 * 1024 * 1024);
    expect(outcome("create", "api/v1/namespaces/a/pods", pod)).toBe("ok");
  });

  it("is that without managed fields where these are too large, but for an apply", () => {
    const finalizers = Array.from({ length: 60_000 }, (_, i) => `a.b/${i}`);
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "fields", finalizers } };
    const made = ask("create", "api/v1/namespaces/a/configmaps", object);
    expect(made.metadata).toMatchObject({ finalizers });
    expect(made.metadata?.managedFields).toBeUndefined();
    const apply = { patchType: "apply", query: { fieldManager: "m" } } as const;
    const other = { ...object, metadata: { name: "applied", finalizers } };
    expect(outcome("patch", "api/v1/namespaces/a/configmaps/applied", other, apply)).toMatch(
      /^500 etcdserver/,
    );
  });

  it("does not grow beyond it by patches", () => {
    ask("create", "api/v1/namespaces/a/configmaps", owned("grows", 1_000_000));
    const patch = { metadata: owned("grows", 2_000_000).metadata };
    const path = "api/v1/namespaces/a/configmaps/grows";
    expect(outcome("patch", path, patch, { patchType: "merge" })).toMatch(
      /^500 etcdserver: request is too large/,
    );
  });
});
