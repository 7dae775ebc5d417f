/**
 * Custom resources as kubectl sees them: kubectl 1.20 with a server that shows 1.20, and kubectl 1.32 with the
 * default one.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Kubectl, kubectlOf, kubectlVersions } from "./support/kubectl.ts";

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, kind: Boat, shortNames: [bt], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.crew, statusReplicasPath: .status.crew}
    additionalPrinterColumns:
    - {name: Length, type: integer, jsonPath: .spec.length, description: Length in metres.}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Harbour, type: string, jsonPath: .spec.harbour, priority: 1}
    schema:
      openAPIV3Schema:
        description: A boat.
        type: object
        required: [spec]
        properties:
          spec:
            description: What the boat is like.
            type: object
            required: [length]
            properties:
              length: {description: Length in metres., type: integer, minimum: 1}
              harbour: {type: string, default: home}
              crew: {type: integer, default: 1}
              sails:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, area: {type: integer}}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
`;

const boat = (length: number, more = "") => `
apiVersion: example.com/v1
kind: Boat
metadata: {name: anna}
spec: {length: ${length}${more}}
`;

for (const [version, emulated] of kubectlVersions) {
  const program = await kubectlOf(version);
  const isNew = version !== "1.20";

  describe.skipIf(program === undefined)(`kubectl ${version} and a server of ${emulated}`, () => {
    let kubectl: Kubectl;

    beforeAll(async () => {
      kubectl = await Kubectl.start(program ?? "", emulated);
      await kubectl.run("apply", "-f", await kubectl.file("boats.yaml", definition));
      await kubectl.run("wait", "--for=condition=Established", "crd/boats.example.com", "--timeout=10s");
    });
    afterAll(() => kubectl.stop());

    it("applies, twice and changed", async () => {
      const file = await kubectl.file("boat.yaml", boat(5, ", sails: [{name: main, area: 9}]"));
      expect(await kubectl.run("apply", "-f", file)).toBe("boat.example.com/anna created\n");
      expect(await kubectl.run("apply", "-f", file)).toBe("boat.example.com/anna unchanged\n");
      await kubectl.file("boat.yaml", boat(6, ", sails: [{name: main, area: 9}]"));
      expect(await kubectl.run("apply", "-f", file)).toBe("boat.example.com/anna configured\n");
    });

    it("gets with the columns of the definition, by every name", async () => {
      const table = await kubectl.run("get", "bt");
      expect(table.split("\n")[0]?.trim().split(/\s+/)).toEqual(["NAME", "LENGTH", "READY"]);
      expect(table.split("\n")[1]).toMatch(/^anna +6/);
      expect(await kubectl.run("get", "boats.example.com", "-o", "wide")).toMatch(/HARBOUR\nanna .* home/);
      expect(await kubectl.run("get", "boat", "anna", "-o", "jsonpath={.spec.harbour}")).toBe("home");
      expect(await kubectl.run("get", "all")).toContain("boat.example.com/anna");
      expect(await kubectl.run("api-resources", "--api-group=example.com")).toMatch(
        /boats +bt +example.com\/v1 +true +Boat/,
      );
    });

    it("explains", async () => {
      expect(await kubectl.run("explain", "boats.spec")).toContain("What the boat is like.");
      expect(await kubectl.run("explain", "boats.spec.length")).toContain("Length in metres.");
    });

    it("patches and scales", async () => {
      await kubectl.run("patch", "boat", "anna", "--type=merge", "-p", '{"spec":{"length":7}}');
      await kubectl.run(
        "patch",
        "boat",
        "anna",
        "--type=json",
        "-p",
        '[{"op":"replace","path":"/spec/harbour","value":"away"}]',
      );
      await kubectl.run("scale", "boat/anna", "--replicas=3");
      const shown = await kubectl.run(
        "get",
        "boat",
        "anna",
        "-o",
        "jsonpath={.spec.length} {.spec.harbour} {.spec.crew}",
      );
      expect(shown).toBe("7 away 3");
    });

    it("gets the validation error", async () => {
      const file = await kubectl.file("bad.yaml", boat(0).replace("anna", "bad"));
      await expect(kubectl.run("create", "-f", file)).rejects.toThrow(
        "spec.length in body should be greater than or equal to 1",
      );
      const unknown = await kubectl.file("unknown.yaml", boat(3, ", colour: red").replace("anna", "bad"));
      await expect(kubectl.run("create", "-f", unknown)).rejects.toThrow(
        isNew ? 'unknown field "spec.colour"' : "colour",
      );
    });

    it.runIf(isNew)("applies at the server, and sees who owns what", async () => {
      const file = await kubectl.file(
        "own.yaml",
        boat(8, ", sails: [{name: jib, area: 4}]").replace("anna", "berta"),
      );
      const other = await kubectl.file(
        "other.yaml",
        boat(9, ", sails: [{name: main, area: 5}]").replace("anna", "berta"),
      );
      await kubectl.run("apply", "--server-side", "--field-manager=one", "-f", file);
      await expect(kubectl.run("apply", "--server-side", "--field-manager=two", "-f", other)).rejects.toThrow(
        ".spec.length",
      );
      await kubectl.run("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", other);
      expect(
        await kubectl.run("get", "boat", "berta", "-o", "jsonpath={.spec.length} {.spec.sails[*].name}"),
      ).toBe("9 jib main");
    });

    it("takes the definitions of snapshots, and shows them", async () => {
      const dir = fileURLToPath(new URL("../../packages/storage/crds/", import.meta.url));
      // The checks of kubectl 1.20 are those of its own time: they know no rules.
      await kubectl.run("apply", ...(isNew ? [] : ["--validate=false"]), "-f", dir);
      await kubectl.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=10s");
      const file = await kubectl.file(
        "snapshot.yaml",
        "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: s}\nspec: {source: {persistentVolumeClaimName: data}}\n",
      );
      await kubectl.run("apply", "-f", file);
      expect((await kubectl.run("get", "vs")).split("\n")[0]?.split(/\s+/)).toEqual([
        "NAME",
        "READYTOUSE",
        "SOURCEPVC",
        "SOURCESNAPSHOTCONTENT",
        "RESTORESIZE",
        "SNAPSHOTCLASS",
        "SNAPSHOTCONTENT",
        "CREATIONTIME",
        "AGE",
      ]);
    });

    it("deletes the definition with all that it made possible", async () => {
      await kubectl.run("delete", "crd", "boats.example.com");
      await expect(kubectl.run("get", "boats")).rejects.toThrow(/NotFound|doesn't have a resource type/);
    });
  });
}
