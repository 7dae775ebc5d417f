/**
 * Three clusters of the gallery on the real API server, with RBAC: under the role that `assess --print-rbac` prints an assessment finds
 * there what it finds in their dumps, and a right that is taken away is a finding.
 */
import type { KubeObject } from "@longshore/kube";
import { type AssessmentFinding, assess, assessmentRole, collectCluster } from "@longshore/migration";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Exhibit, exhibits, inventoryOf } from "../components/migration/gallery/gallery.ts";
import { type ControlPlane, connectAs, signal, startControlPlane } from "./support/index.ts";
import { bindRole } from "./support/rights.ts";

const auditor = "auditor";
const roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
/** Objects of a new server are new; what is stuck for six minutes is to be found as well. */
const anHourLater = { now: () => new Date(Date.now() + 3_600_000) };

async function create(kubernetes: ControlPlane, object: KubeObject): Promise<void> {
  const { apiVersion = "v1", kind = "", metadata } = object;
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  const plural = kind === "StorageClass" ? "storageclasses" : `${kind.toLowerCase()}s`;
  const within = metadata?.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
  const path = `${root}${within}/${plural}`;
  const made = await kubernetes.call("POST", path, object);
  if (made.status !== 201) throw new Error(`${kind} ${metadata?.name}: ${made.status} ${made.body.message}`);
  const { status } = object as { readonly status?: object };
  if (status === undefined) return;
  const contentType = "application/merge-patch+json";
  const written = await kubernetes.call(
    "PATCH",
    `${path}/${metadata?.name}/status`,
    { status },
    { contentType },
  );
  if (written.status !== 200) {
    throw new Error(`status of ${kind} ${metadata?.name}: ${written.status} ${written.body.message}`);
  }
}

async function clusterOf({ objects }: Exhibit): Promise<ControlPlane> {
  const kubernetes = await startControlPlane({ users: [{ name: auditor }] });
  const namespaces = new Set(objects.flatMap(({ metadata }) => metadata?.namespace ?? []));
  for (const name of namespaces) {
    await create(kubernetes, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  for (const object of objects) await create(kubernetes, object);
  await create(kubernetes, assessmentRole());
  await bindRole(kubernetes, auditor, "longshore-assess");
  return kubernetes;
}

const shown = (findings: readonly AssessmentFinding[]) =>
  findings
    .map(({ code, severity, object, field, when }) => [code, severity, object, field ?? "", when].join(" "))
    .sort();

async function found(kubernetes: ControlPlane, targetMinor: number): Promise<string[]> {
  const kube = await connectAs(kubernetes, auditor);
  try {
    const inventory = await collectCluster({ clock: anHourLater, kube }, { signal });
    return shown(assess(inventory, { targetMinor }).findings);
  } finally {
    await kube.close();
  }
}

describe.each(["cinder-1.20-half-crossed", "aws-1.20-attachments", "mixed-1.20-volumes-in-pods"])(
  "%s on a real API server",
  (name) => {
    const exhibit = exhibits[name] as Exhibit;
    let kubernetes: ControlPlane;
    beforeAll(async () => {
      kubernetes = await clusterOf(exhibit);
    });
    afterAll(() => kubernetes?.stop());

    test("is found as it is in its dump, under the printed role", async () => {
      const dumped = shown(assess(await inventoryOf(exhibit), { targetMinor: exhibit.target }).findings);
      expect(await found(kubernetes, exhibit.target)).toEqual(dumped);
    });

    test.each(["csinodes", "volumeattachments", "events"])(
      "without the right to list %s, says so",
      async (plural) => {
        const role = assessmentRole() as KubeObject & { rules: { resources: string[] }[] };
        const rules = role.rules.map((rule) => ({
          ...rule,
          resources: rule.resources.filter((resource) => resource !== plural),
        }));
        const put = (body: object) => kubernetes.call("PUT", `${roles}/longshore-assess`, body);
        expect((await put({ ...role, rules })).status).toBe(200);
        try {
          const kinds = { csinodes: "CSINode", volumeattachments: "VolumeAttachment", events: "Event" };
          const severity = plural === "csinodes" ? "unknown" : "warning";
          const kind = kinds[plural as keyof typeof kinds];
          // The authorizer sees the changed role a moment later.
          await expect
            .poll(() => found(kubernetes, exhibit.target), { timeout: 20_000 })
            .toContain(`LS1001 ${severity} kind ${kind}  both`);
        } finally {
          await put(role);
        }
      },
    );
  },
);
