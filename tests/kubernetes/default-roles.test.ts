/** The roles and bindings that a cluster begins with: those of the real kube-apiserver, and ours of its version. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { uncovered } from "../../packages/apiserver/src/authorization/rbac/cover.ts";
import type { PolicyRule } from "../../packages/apiserver/src/authorization/rbac/policy-rule.ts";
import { HttpsConnections } from "../../packages/apiserver/src/testing/http.ts";
import { adminToken, serveForTest, type TestServer } from "../../packages/apiserver/src/testing/serve.ts";
import { type ControlPlane, startControlPlane } from "./support/index.ts";

interface AccessObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: unknown;
    readonly annotations?: unknown;
  };
  readonly rules?: readonly PolicyRule[] | null;
  readonly aggregationRule?: unknown;
  readonly roleRef?: unknown;
  readonly subjects?: unknown;
}

let real: ControlPlane;
let own: TestServer;
let to: HttpsConnections;
beforeAll(async () => {
  real = await startControlPlane();
  own = await serveForTest({ emulatedVersion: "1.20" });
  to = new HttpsConnections(own.front.url, { ca: own.authority.certificate });
}, 120_000);
afterAll(async () => {
  to?.close();
  await own?.stop();
  await real?.stop();
});

const keyOf = ({ metadata }: AccessObject) => `${metadata.namespace ?? ""}/${metadata.name}`;
/** Everything but the rules, which may be written in other ways, and what each server sets by itself. */
const identityOf = ({ metadata, aggregationRule, roleRef, subjects }: AccessObject) => ({
  labels: metadata.labels,
  annotations: metadata.annotations,
  aggregationRule,
  roleRef,
  subjects,
});

describe.each(["clusterroles", "clusterrolebindings", "roles", "rolebindings"])("%s", (plural) => {
  it("are the same, and give the same rights", async () => {
    const path = `/apis/rbac.authorization.k8s.io/v1/${plural}`;
    const headers = { authorization: `Bearer ${adminToken}` };
    const ours: readonly AccessObject[] = (await to.json({ path, headers })).items;
    const theirs = (await real.call("GET", path)).body.items as readonly AccessObject[];
    expect(ours.map(keyOf).sort()).toEqual(theirs.map(keyOf).sort());
    for (const theirOne of theirs) {
      const ourOne = ours.find((one) => keyOf(one) === keyOf(theirOne)) as AccessObject;
      expect(identityOf(ourOne), keyOf(ourOne)).toEqual(identityOf(theirOne));
      // Aggregated rules are the work of a controller, which does not run with the real server here.
      if (theirOne.aggregationRule !== undefined) continue;
      const [a, b] = [ourOne.rules ?? [], theirOne.rules ?? []];
      expect([...uncovered(a, b).rules, ...uncovered(b, a).rules], keyOf(ourOne)).toEqual([]);
    }
  });
});
