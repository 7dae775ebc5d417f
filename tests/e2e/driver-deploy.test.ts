/**
 * `longshore driver deploy | kubectl apply -f -`, as a user has it: kubectl validates every member of every object against
 * the server's schema and the server takes them; a second apply changes nothing, and `kubectl delete` finds them all. The
 * token of the controller's account has the rights that it must have and no others.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Kubectl, kubectlOf, kubectlVersions } from "./support/kubectl.ts";
import { longshore } from "./support/run-command.ts";

const definitions = fileURLToPath(new URL("../../packages/storage/crds/", import.meta.url));
const flags = [
  ..."--name disk.csi.example.com --image registry.example.com/disk:v1 --replicas 2".split(" "),
  ..."--attach --resize --snapshot --group-snapshot --topology --capacity --modify --health-monitor".split(
    " ",
  ),
  ..."--snapshot-controller --host-devices --secret-namespace default --storage-class fast:type=ssd".split(
    " ",
  ),
  ..."--node-selector node-role.kubernetes.io/infra= --tolerations infra:NoSchedule".split(" "),
  "--driver-arg=--endpoint=$(CSI_ENDPOINT)",
];

for (const [version, emulated] of kubectlVersions) {
  const program = await kubectlOf(version);

  describe.skipIf(program === undefined)(`kubectl ${version} and a server of ${emulated}`, () => {
    let kubectl: Kubectl;
    let rendered: string;
    beforeAll(async () => {
      kubectl = await Kubectl.start(program ?? "", emulated);
      await kubectl.run("apply", "-f", definitions);
      const { code, out, err } = await longshore(
        "driver",
        "deploy",
        ...flags,
        "--kubernetes-version",
        emulated,
      );
      expect({ code, err }).toEqual({ code: 0, err: "" });
      rendered = await kubectl.file("deployment.yaml", out);
    });
    afterAll(() => kubectl.stop());

    test("everything is made, and the second time nothing changes", async () => {
      const made = (await kubectl.run("apply", "--validate=true", "-f", rendered)).trim().split("\n");
      expect(made.length).toBeGreaterThan(20);
      expect(made.filter((line) => !line.endsWith(" created"))).toEqual([]);
      const again = (await kubectl.run("apply", "-f", rendered)).trim().split("\n");
      expect(again.filter((line) => !line.endsWith(" unchanged"))).toEqual([]);
    });

    test("the controller's account may what its sidecars do, and nothing beside it", async () => {
      const account = "system:serviceaccount:disk-csi-example-com:disk-csi-example-com-controller";
      const may = async (...what: readonly string[]) =>
        (await kubectl.ran(["auth", "can-i", ...what, "--as", account])).out.trim();
      expect(await may("create", "persistentvolumes")).toBe("yes");
      expect(await may("get", "secrets", "-n", "default")).toBe("yes");
      expect(await may("patch", "volumeattachments.storage.k8s.io", "--subresource=status")).toBe("yes");
      expect(await may("get", "secrets", "-n", "kube-system")).toBe("no");
      expect(await may("list", "secrets", "-n", "default")).toBe("no");
      expect(await may("delete", "persistentvolumeclaims", "-n", "default")).toBe("no");
      expect(await may("update", "nodes")).toBe("no");
      expect(await may("create", "pods", "-n", "disk-csi-example-com")).toBe("no");
    });

    test("all of it is deleted again", async () => {
      // The namespace goes first, and takes with it what is in it.
      await kubectl.run("delete", "--ignore-not-found", "--wait=false", "-f", rendered);
      const kinds =
        "clusterroles,clusterrolebindings,roles,rolebindings,csidrivers,storageclasses,volumesnapshotclasses";
      const label = "longshore.dev/driver=disk.csi.example.com";
      expect(await kubectl.run("get", kinds, "--all-namespaces", "-l", label, "-o", "name")).toBe("");
    });
  });
}
