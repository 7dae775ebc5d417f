/** Every `kubectl create …` of an old and a new kubectl makes its object: kubectl sends most of them as protobuf. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Kubectl, kubectlOf, kubectlVersions } from "./support/kubectl.ts";

/** What follows `kubectl create`, and where the object is then. */
const generators: readonly (readonly [command: string, made: string])[] = [
  ["namespace one", "namespace/one"],
  ["serviceaccount one", "serviceaccount/one"],
  ["clusterrole one --verb=get,list --resource=pods", "clusterrole/one"],
  ["clusterrolebinding one --clusterrole=view --user=jane", "clusterrolebinding/one"],
  ["configmap one --from-literal=a=b", "configmap/one"],
  ["cronjob one --image=busybox --schedule=*/5****", "cronjob/one"],
  ["deployment one --image=busybox", "deployment/one"],
  ["ingress one --rule=example.com/=web:80", "ingress/one"],
  ["job one --image=busybox", "job/one"],
  ["job two --from=cronjob/one", "job/two"],
  ["poddisruptionbudget one --selector=app=one --min-available=1", "poddisruptionbudget/one"],
  ["priorityclass one --value=1000 --description=d", "priorityclass/one"],
  ["quota one --hard=configmaps=20,pods=20", "quota/one"],
  ["role one --verb=get --resource=pods", "role/one"],
  ["rolebinding one --clusterrole=view --user=jane", "rolebinding/one"],
  ["secret generic one --from-literal=a=b", "secret/one"],
  [
    "secret docker-registry two --docker-username=u --docker-password=p --docker-email=e@example.com",
    "secret/two",
  ],
  ["service clusterip one --tcp=80:80", "service/one"],
  ["service externalname two --external-name=example.com", "service/two"],
  ["service loadbalancer three --tcp=80:80", "service/three"],
  ["service nodeport four --tcp=80:80", "service/four"],
];

for (const [version, emulated] of kubectlVersions) {
  const program = await kubectlOf(version);

  describe.skipIf(program === undefined)(`kubectl ${version} and a server of ${emulated}`, () => {
    let kubectl: Kubectl;
    beforeAll(async () => {
      kubectl = await Kubectl.start(program ?? "", emulated);
    });
    afterAll(() => kubectl.stop());

    it.each(generators)("create %s", async (command, made) => {
      const words = command.split(" ").map((word) => word.replace("/5****", "/5 * * * *"));
      await kubectl.run("create", ...words);
      expect(await kubectl.run("get", made, "-o", "name")).toContain(`/${made.split("/")[1]}`);
    });

    it("autoscale, scale, expose, run, and a token", async () => {
      await kubectl.run("autoscale", "deployment/one", "--min=1", "--max=3", "--cpu-percent=80");
      expect(await kubectl.run("get", "hpa/one", "-o", "jsonpath={.spec.maxReplicas}")).toBe("3");
      await kubectl.run("scale", "deployment/one", "--replicas=2");
      expect(await kubectl.run("get", "deployment/one", "-o", "jsonpath={.spec.replicas}")).toBe("2");
      await kubectl.run("expose", "deployment/one", "--name=five", "--port=80");
      expect(await kubectl.run("get", "service/five", "-o", "jsonpath={.spec.ports[0].port}")).toBe("80");
      await kubectl.run("run", "one", "--image=busybox");
      expect(await kubectl.run("get", "pod/one", "-o", "jsonpath={.spec.containers[0].image}")).toBe(
        "busybox",
      );
      if (version === "1.20") return;
      expect(await kubectl.run("create", "token", "one")).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+/);
    });
  });
}
