/**
 * Server-side apply as kubectl does it: who manages what, conflicts and force, dry runs, `kubectl diff`, and the way
 * from client-side to server-side apply and back.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Kubectl, kubectlOf, kubectlVersions } from "./support/kubectl.ts";

const settings = (data: string, name = "settings") => `
apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}}
data: ${data}
`;

const deployment = (replicas: number, image: string, name = "web") => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: ${image}
        ports: [{containerPort: 80}]
`;

interface Entry {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly fieldsV1: Readonly<Record<string, unknown>>;
}

for (const [version, emulated] of kubectlVersions) {
  const program = await kubectlOf(version);

  describe.skipIf(program === undefined)(`kubectl ${version} and a server of ${emulated}`, () => {
    let kubectl: Kubectl;
    beforeAll(async () => {
      kubectl = await Kubectl.start(program ?? "", emulated);
    });
    afterAll(() => kubectl.stop());

    const apply = async (text: string, ...args: readonly string[]) =>
      kubectl.run("apply", "-f", await kubectl.file("applied.yaml", text), ...args);
    const refused = async (text: string, ...args: readonly string[]) =>
      kubectl.refused("apply", "-f", await kubectl.file("applied.yaml", text), ...args);
    const managersOf = async (what: string): Promise<readonly Entry[]> => {
      // Newer ones leave them out unless they are asked for.
      const shown = version === "1.20" ? [] : ["--show-managed-fields"];
      const { metadata } = JSON.parse(await kubectl.run("get", what, "-o", "json", ...shown));
      return metadata.managedFields ?? [];
    };
    const names = async (what: string) =>
      (await managersOf(what)).map(({ manager, operation }) => `${manager} ${operation}`).sort();

    it("applies, applies again, and takes away what is no longer said", async () => {
      expect(await apply(settings('{a: "1", b: "2"}'), "--server-side")).toBe(
        "configmap/settings serverside-applied\n",
      );
      const before = await managersOf("configmap/settings");
      await apply(settings('{a: "1", b: "2"}'), "--server-side");
      expect(await managersOf("configmap/settings")).toEqual(before);
      await apply(settings('{a: "1"}'), "--server-side");
      expect(await kubectl.run("get", "configmap/settings", "-o", "jsonpath={.data}")).toBe('{"a":"1"}');
      expect(await names("configmap/settings")).toEqual(["kubectl Apply"]);
    });

    it("reports a conflict, and takes the field by force", async () => {
      await apply(settings('{a: "1"}', "disputed"), "--server-side", "--field-manager=one");
      const output = await refused(settings('{a: "2"}', "disputed"), "--server-side", "--field-manager=two");
      expect(output).toContain('conflict with "one"');
      expect(output).toContain(".data.a");
      await apply(
        settings('{a: "2"}', "disputed"),
        "--server-side",
        "--field-manager=two",
        "--force-conflicts",
      );
      expect(await names("configmap/disputed")).toEqual(["two Apply"]);
    });

    it("leaves no trace of a dry run", async () => {
      const output = await apply(settings('{a: "1"}', "dry"), "--server-side", "--dry-run=server");
      expect(output).toContain("configmap/dry serverside-applied (server dry run)");
      expect(await kubectl.refused("get", "configmap/dry")).toContain("not found");
    });

    it("shows what an apply would change", async () => {
      await apply(deployment(1, "web:1", "shown"), "--server-side");
      const file = await kubectl.file("next.yaml", deployment(1, "web:2", "shown"));
      const { out, code } = await kubectl.ran(["diff", "--server-side", "-f", file]);
      expect(code).toBe(1);
      expect(out).toMatch(/^-\s+- image: web:1$/m);
      expect(out).toMatch(/^\+\s+- image: web:2$/m);
      expect(
        await kubectl.run(
          "diff",
          "--server-side",
          "-f",
          await kubectl.file("same.yaml", deployment(1, "web:1", "shown")),
        ),
      ).toBe("");
    });

    it("goes over from client-side to server-side apply without a conflict", async () => {
      await apply(deployment(1, "web:1", "moved"));
      expect(await names("deployment/moved")).toEqual(["kubectl-client-side-apply Update"]);
      await apply(deployment(2, "web:2", "moved"), "--server-side");
      const spec = JSON.parse(await kubectl.run("get", "deployment/moved", "-o", "json"));
      expect(spec.spec.replicas).toBe(2);
      const last = spec.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"];
      expect(JSON.parse(last).spec.replicas).toBe(2);
      expect(await names("deployment/moved")).toContain("kubectl Apply");
      // And back: what client-side apply says of the same object still counts.
      await apply(deployment(3, "web:2", "moved"));
      expect(await kubectl.run("get", "deployment/moved", "-o", "jsonpath={.spec.replicas}")).toBe("3");
    });

    it("names the sub-resource that a scale came through, where the version does", async () => {
      await apply(deployment(1, "web:1", "scaled"), "--server-side");
      await kubectl.run("scale", "deployment/scaled", "--replicas=4");
      const entries = await managersOf("deployment/scaled");
      const scaled = entries.filter(({ subresource }) => subresource === "scale");
      expect(scaled.map(({ fieldsV1 }) => fieldsV1)).toEqual(
        emulated === "1.20" ? [] : [{ "f:spec": { "f:replicas": {} } }],
      );
    });
  });
}
