/** An assessment under exactly the role that it prints, on the embedded API server with RBAC. */
import { type ApiServer, createApiServer, memoryStore } from "@longshore/apiserver";
import { KubeApiError, type KubeClient, type KubeObject, type Resource, resources } from "@longshore/kube";
import { assess, assessmentRole, collectCluster } from "@longshore/migration";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { migrationGates } from "@longshore/translation";
import { volumeGatesFor } from "@longshore/volumes";
import { describe, expect, test } from "vitest";
import { pluginStateAt } from "../../../packages/migration/src/assess/plugin-history.ts";

const signal = new AbortController().signal;
const rbac = (kind: string, plural: string): Resource<KubeObject> => ({
  group: "rbac.authorization.k8s.io",
  versions: ["v1"],
  kind,
  plural,
  namespaced: false,
});
const apiVersion = "rbac.authorization.k8s.io/v1";

/** What an account with this role, or without any, finds. */
async function assessedWith(role: KubeObject | undefined, checkSecrets = false) {
  const clock = new VirtualClock();
  const runtime = { clock, random: new SeededRandom(7), logger: silentLogger, meter: noMeter };
  const server: ApiServer = createApiServer(runtime, { store: memoryStore() });
  const admin = server.client();
  const secret = { metadata: { name: "s", namespace: "default" }, data: { key: "aGlkZGVu" } };
  await admin.create(resources.secrets, secret, { signal });
  const node = { metadata: { name: "n1" }, status: { nodeInfo: { kubeletVersion: "v1.20.2" } } };
  await admin.create(resources.nodes, node as KubeObject, { signal });
  if (role !== undefined) {
    await admin.create(rbac("ClusterRole", "clusterroles"), role, { signal });
    const binding = {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: { name: "assess" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role.metadata?.name },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "auditor" }],
    };
    await admin.create(rbac("ClusterRoleBinding", "clusterrolebindings"), binding as KubeObject, { signal });
  }
  const kube = server.client({ name: "auditor", groups: ["system:authenticated"] });
  return collectCluster({ clock, kube }, { signal, checkSecrets });
}

describe("the rights of an assessment", () => {
  test("are those that it prints: nothing is refused", async () => {
    const inventory = await assessedWith(assessmentRole());
    expect(inventory.gaps).toEqual([]);
    expect(inventory.nodes).toHaveLength(1);
    expect(inventory.secrets).toBeUndefined();
  });

  test("with Secrets: their names are read, and nothing of what is in them", async () => {
    const inventory = await assessedWith(assessmentRole({ checkSecrets: true }), true);
    expect(inventory.gaps).toEqual([]);
    expect(inventory.secrets?.has("default/s")).toBe(true);
    expect(JSON.stringify(inventory)).not.toContain("aGlkZGVu");
  });

  test("are each needed: what may not be read is a finding, and there is no verdict without it", async () => {
    const refused = (await assessedWith(undefined, true)).gaps.map(({ object }) => object);
    const { rules } = assessmentRole({ checkSecrets: true }) as unknown as {
      readonly rules: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
    };
    expect(refused).toHaveLength(rules.flatMap((rule) => rule.resources).length);
    expect(new Set(rules.flatMap(({ verbs }) => verbs))).toEqual(new Set(["list"]));
    const assessment = assess(await assessedWith(undefined));
    expect(assessment.verdict).toBe("CANNOT DETERMINE");
    expect(assessment.findings.map(({ code }) => code)).toContain("LS1001");
  });
});

test("an account that the server does not know is no gap of a report, but its end", async () => {
  const unknown = () =>
    Promise.reject(
      new KubeApiError({
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        code: 401,
        message: "Unauthorized",
      }),
    );
  const kube = { list: unknown } as unknown as KubeClient;
  await expect(collectCluster({ clock: new VirtualClock(), kube }, { signal })).rejects.toMatchObject({
    code: 401,
  });
});

describe("what a version does with each plugin", () => {
  test("is what its gates are by default", () => {
    for (const { inTreeName, gate } of migrationGates) {
      for (let minor = 17; minor <= 37; minor++) {
        const isOn = volumeGatesFor(`1.${minor}`)[gate]?.default === true;
        expect([inTreeName, minor, pluginStateAt(inTreeName, minor) === "redirected"]).toEqual([
          inTreeName,
          minor,
          isOn,
        ]);
      }
    }
  });
});
