/**
 * The embedded API server as kubectl sees it: kubectl 1.20 with a server that shows 1.20, and kubectl 1.32 with the
 * default one. Each uses other means: the older one has OpenAPI v2 and checks what it sends, the newer one aggregated
 * discovery, OpenAPI v3 and the server's own checks.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Kubectl, kubectlOf, kubectlVersions } from "./support/kubectl.ts";
import { manifests, statuses } from "./support/kubectl-objects.ts";

const volume = (size: string, name = "pv-1") => `
apiVersion: v1
kind: PersistentVolume
metadata: {name: ${name}}
spec:
  capacity: {storage: ${size}}
  accessModes: [ReadWriteOnce]
  awsElasticBlockStore: {volumeID: aws://us-east-1a/vol-1, fsType: ext4}
`;

const statefulSet = (image: string, extra = "") => `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: ${image}
        env: [{name: A, value: "1"}${extra}]
`;

/** Cells of the line that begins with the name. */
const cells = (table: string, name: string) =>
  table
    .split("\n")
    .find((line) => line.startsWith(`${name} `))
    ?.trim()
    .split(/\s{2,}/);

for (const [version, emulated] of kubectlVersions) {
  const program = await kubectlOf(version);
  const isNew = version !== "1.20";

  describe.skipIf(program === undefined)(`kubectl ${version} and a server of ${emulated}`, () => {
    let kubectl: Kubectl;

    beforeAll(async () => {
      kubectl = await Kubectl.start(program ?? "", emulated);
      await kubectl.run("create", "-f", await kubectl.file("objects.yaml", manifests));
      for (const [path, status] of statuses) await patchStatus(path, status);
    });
    afterAll(() => kubectl.stop());

    /** Writes a status as its controller would: kubectl has had a way to do so only since 1.24. */
    async function patchStatus(path: string, status: object): Promise<void> {
      const { call } = await client();
      await call("PATCH", `${path}/status`, { status });
    }

    async function client() {
      const { KubeConfig } = await import("@kubernetes/client-node");
      const config = new KubeConfig();
      config.loadFromFile(kubectl.kubeconfig);
      const { request } = await import("node:https");
      const url = config.getCurrentCluster()?.server ?? "";
      return {
        async call(method: string, path: string, body: object): Promise<void> {
          const options = { method, headers: { "content-type": "application/merge-patch+json" } };
          await config.applyToHTTPSOptions(options);
          await new Promise<void>((resolve, reject) => {
            const sent = request(`${url}${path}`, options, (response) => {
              response.resume();
              if (response.statusCode === 200) resolve();
              else reject(new Error(`${method} ${path} was answered with ${response.statusCode}`));
            });
            sent.on("error", reject);
            sent.end(JSON.stringify(body));
          });
        },
      };
    }

    describe("gets", () => {
      it("the server's version and namespaces", async () => {
        const { serverVersion } = JSON.parse(await kubectl.run("version", "-o", "json"));
        expect(`${serverVersion.major}.${serverVersion.minor}`).toBe(emulated);
        expect((await kubectl.run("get", "ns", "-o", "name")).split("\n").filter(Boolean)).toEqual([
          "namespace/default",
          "namespace/kube-node-lease",
          "namespace/kube-public",
          "namespace/kube-system",
          "namespace/shop",
        ]);
      });

      const attributes = isNew ? ["<unset>"] : [];
      it.each([
        [
          "pv",
          "pv-ebs",
          ["pv-ebs", "1Gi", "RWO,ROX", "Retain", "Pending", ...attributes, "AGE", "Filesystem"],
        ],
        [
          "pv",
          "pv-csi",
          ["pv-csi", "3Gi", "RWX", "Delete", "Bound", "shop/data", "gold", ...attributes, "AGE", "Block"],
        ],
        ["pvc", "data", ["data", "Bound", "pv-csi", "3Gi", "RWX", "gold", ...attributes, "AGE", "Block"]],
        [
          "sc",
          "gold",
          ["gold (default)", "csi.example.com", "Delete", "WaitForFirstConsumer", "true", "AGE"],
        ],
        ["csinode", "node-1", ["node-1", "1", "AGE"]],
        [
          "csidriver",
          "csi.example.com",
          [
            "csi.example.com",
            "true",
            "true",
            ...(isNew ? ["false", "<unset>", "false"] : []),
            "Persistent,Ephemeral",
            "AGE",
          ],
        ],
        ["volumeattachment", "va-1", ["va-1", "csi.example.com", "pv-csi", "node-1", "true", "AGE"]],
        [
          "node",
          "node-1",
          ["node-1", "Ready", "worker", "AGE", "v1.20.2", "10.0.0.1", "<none>", "Linux", "5.1", "x://1"],
        ],
        [
          "pod",
          "web",
          ["web", "1/2", "CrashLoopBackOff", "4", "AGE", "10.1.0.5", "node-1", "<none>", "<none>"],
        ],
        ["pod", "waiting", ["waiting", "0/1", "Pending", "0", "AGE", "<none>", "<none>", "<none>", "<none>"]],
        ["sts", "db", ["db", "0/2", "AGE", "main", "db:1"]],
        ["deploy", "front", ["front", "0/3", "0", "0", "AGE", "main", "f:1", "app=front"]],
        ["secret", "hidden", ["hidden", "Opaque", "1", "AGE"]],
      ])("%s in a wide table", async (resource, name, expected) => {
        const table = await kubectl.run("get", resource, "-n", "shop", "-o", "wide");
        const age = expected.indexOf("AGE");
        expect(
          cells(table, name)?.map((cell, i) => (i === age && /^\d+[smh]/.test(cell) ? "AGE" : cell)),
        ).toEqual(expected);
      });

      it.each<readonly [args: string, out: RegExp | string]>([
        ["get pv -o jsonpath={.items[*].metadata.name}", "pv-csi pv-ebs"],
        [
          "get pv --sort-by=.spec.capacity.storage -o name",
          "persistentvolume/pv-ebs\npersistentvolume/pv-csi\n",
        ],
        [
          "get pv pv-csi -o custom-columns=NAME:.metadata.name,DRIVER:.spec.csi.driver",
          /^NAME\s+DRIVER\npv-csi\s+csi.example.com\n$/,
        ],
        ["get pods -A -l app=web -o name", "pod/waiting\npod/web\n"],
        ["get pods -A --field-selector=spec.nodeName=node-1 -o name", "pod/web\n"],
        ["get pods -n shop -l app=web -L app", /^NAME .* APP\nwaiting .* web\nweb .* web\n$/],
        [
          "get events -n shop --field-selector=involvedObject.name=web",
          /Normal\s+Pulled\s+pod\/web\s+image is there/,
        ],
        ["get events -n shop -o wide", /kubelet, node-1\s+image is there\s+\S+\s+3\s+web\.1/],
        ["get pv,pvc -n shop -o name", /persistentvolume\/pv-ebs\npersistentvolumeclaim\/data\n$/],
        ["get all -n shop -o name", "pod/waiting\npod/web\ndeployment.apps/front\nstatefulset.apps/db\n"],
        ["get --raw /healthz", "ok"],
        ["get --raw /api/v1/nodes/node-1", /"kubeletVersion":"v1.20.2"/],
        ["api-versions", /^apps\/v1\n[\s\S]*\nstorage.k8s.io\/v1\n[\s\S]*v1\n$/m],
        ["api-resources --api-group=storage.k8s.io -o name", /^csidrivers.storage.k8s.io\ncsinodes/],
        ["api-resources --namespaced=false", /persistentvolumes\s+pv\s+v1\s+false\s+PersistentVolume/],
      ])("%s", async (args, out) => {
        const printed = await kubectl.run(...args.split(" "));
        if (typeof out === "string") expect(printed).toBe(out);
        else expect(printed).toMatch(out);
      });

      it("what is not there", async () => {
        expect(await kubectl.refused("get", "pod", "missing", "-n", "shop")).toBe(
          'Error from server (NotFound): pods "missing" not found\n',
        );
        expect(await kubectl.refused("get", "nonsense")).toContain("doesn't have a resource type");
      });

      it("a table that goes on", async () => {
        const rows = kubectl.watch("get", "cm", "-n", "shop", "-w", "--no-headers");
        await rows.has(/^settings\s+1\s/m);
        await kubectl.run("patch", "cm", "settings", "-n", "shop", "-p", '{"data":{"x":"y"}}');
        await rows.has(/^settings\s+2\s/m);
        rows.stop();
      });
    });

    describe("describes", () => {
      it.each<readonly [args: string, parts: readonly RegExp[]]>([
        [
          "pv pv-ebs",
          [
            /VolumeID:\s+aws:\/\/us-east-1a\/vol-1/,
            /Partition:\s+1/,
            /topology.kubernetes.io\/zone in \[z1, z2\]/,
          ],
        ],
        ["pv pv-csi", [/Driver:\s+csi.example.com/, /VolumeAttributes:\s+size=big/, /Claim:\s+shop\/data/]],
        ["pvc data -n shop", [/Status:\s+Bound/, /Capacity:\s+3Gi/, /(Mounted|Used) By:\s+web/]],
        ["pod web -n shop", [/ClaimName:\s+data/, /Reason:\s+CrashLoopBackOff/, /Restart Count:\s+3/]],
        ["node node-1", [/Roles:\s+worker/, /shop\s+web/, /KubeletReady/, /Kubelet Version:\s+v1.20.2/]],
        ["sc gold", [/IsDefaultClass:\s+Yes/, /AllowVolumeExpansion:\s+True/, /Parameters:\s+type=io1/]],
        ["events -n shop", [/Reason:\s+Pulled/, /Component:\s+kubelet/]],
        ["secret hidden -n shop", [/password:\s+7 bytes/]],
        ["volumeattachment va-1", [/Attached:\s+true/]],
        ["deploy front -n shop", [/Replicas:\s+3 desired/, /Image:\s+f:1/]],
      ])("%s", async (args, parts) => {
        const text = await kubectl.run("describe", ...args.split(" "));
        for (const part of parts) expect(text).toMatch(part);
        expect(text).not.toContain("hunter2");
      });
    });

    describe("writes", () => {
      it("applies a volume, says that nothing changed, and shows what would", async () => {
        const file = await kubectl.file("volume.yaml", volume("1024Mi"));
        expect(await kubectl.run("apply", "-f", file)).toBe("persistentvolume/pv-1 created\n");
        expect(await kubectl.run("apply", "-f", file)).toContain("persistentvolume/pv-1");
        expect(cells(await kubectl.run("get", "pv"), "pv-1")?.slice(0, 5)).toEqual([
          "pv-1",
          "1Gi",
          "RWO",
          "Retain",
          "Pending",
        ]);
        const grown = await kubectl.file("grown.yaml", volume("2Gi"));
        const { out, code } = await kubectl.ran(["diff", "-f", grown]);
        expect([code, out]).toEqual([1, expect.stringMatching(/-\s+storage: 1Gi\n\+\s+storage: 2Gi/)]);
        expect(await kubectl.run("apply", "-f", grown)).toBe("persistentvolume/pv-1 configured\n");
        expect((await kubectl.ran(["diff", "-f", grown])).code).toBe(0);
        expect(await kubectl.run("replace", "-f", grown)).toBe("persistentvolume/pv-1 replaced\n");
      });

      it("merges a changed manifest by the keys of its lists", async () => {
        const apply = async (text: string) =>
          kubectl.run("apply", "-f", await kubectl.file("sts.yaml", text));
        await apply(statefulSet("registry.example.com/a:1"));
        await kubectl.run("set", "env", "statefulset/web", "OTHER=kept");
        expect(await apply(statefulSet("registry.example.com/a:2", ', {name: B, value: "2"}'))).toBe(
          "statefulset.apps/web configured\n",
        );
        const { metadata, spec } = JSON.parse(await kubectl.run("get", "sts", "web", "-o", "json"));
        const [main] = spec.template.spec.containers;
        expect(main.image).toBe("registry.example.com/a:2");
        expect(new Set(main.env.map((e: { name: string }) => e.name))).toEqual(new Set(["A", "B", "OTHER"]));
        expect(metadata.generation).toBe(3);
      });

      it("refuses a manifest with an unknown member", async () => {
        const wrong = await kubectl.file("wrong.yaml", volume("1Gi", "pv-2").replace("fsType", "fsKind"));
        const refusal = await kubectl.refused("apply", "-f", wrong);
        expect(refusal).toMatch(
          isNew
            ? /strict decoding error: unknown field "spec\.awsElasticBlockStore\.fsKind"/
            : /unknown field "fsKind" in io\.k8s\.api\.core\.v1\.AWSElasticBlockStoreVolumeSource/,
        );
        if (!isNew) return;
        const { err, code } = await kubectl.ran(["apply", "-f", wrong, "--validate=warn"]);
        expect([code, err]).toEqual([0, 'Warning: unknown field "spec.awsElasticBlockStore.fsKind"\n']);
        const again = await kubectl.ran(["create", "--dry-run=server", "-f", wrong, "--validate=ignore"]);
        expect(again.err).toMatch(/AlreadyExists/);
        await kubectl.run("delete", "pv", "pv-2", "--wait=false");
      });

      it("shows why the server refuses", async () => {
        const file = await kubectl.file("moved.yaml", volume("2Gi").replace("vol-1", "vol-2"));
        expect(await kubectl.refused("apply", "-f", file)).toMatch(/spec\.persistentvolumesource: Forbidden/);
      });

      it("applies on the server, and reports which other manager has set what", async () => {
        const file = await kubectl.file("cm.yaml", configMap("blue"));
        const apply = (...more: readonly string[]) =>
          kubectl.ran(["apply", "--server-side", "-f", file, ...more]);
        expect((await apply()).out).toBe("configmap/applied serverside-applied\n");
        await kubectl.run("patch", "cm", "applied", "--type=merge", "-p", '{"data":{"colour":"red"}}');
        expect((await apply()).err).toMatch(/conflict.*\n?.*\.data\.colour/s);
        expect((await apply("--force-conflicts")).out).toBe("configmap/applied serverside-applied\n");
        expect(await kubectl.run("get", "cm", "applied", "-o", "jsonpath={.data.colour}")).toBe("blue");
      });

      it("edits with an editor of the user's", async () => {
        await kubectl.run("create", "configmap", "edited", "--from-literal=word=old");
        const editor = await kubectl.program(
          "editor",
          'sed "s/word: old/word: new/" "$1" > "$1.x" && mv "$1.x" "$1"',
        );
        const { out } = await kubectl.ran(["edit", "cm", "edited"], { KUBE_EDITOR: editor });
        expect(out).toBe("configmap/edited edited\n");
        expect(await kubectl.run("get", "cm", "edited", "-o", "jsonpath={.data.word}")).toBe("new");
      });

      it("patches in all three ways", async () => {
        await kubectl.run("create", "configmap", "cm", "--from-literal=a=1");
        await kubectl.run("patch", "cm", "cm", "--type=merge", "-p", '{"data":{"b":"2"}}');
        await kubectl.run("patch", "cm", "cm", "--type=json", "-p", '[{"op":"remove","path":"/data/a"}]');
        await kubectl.run("patch", "cm", "cm", "-p", '{"data":{"c":"3"}}');
        expect(JSON.parse(await kubectl.run("get", "cm", "cm", "-o", "jsonpath={.data}"))).toEqual({
          b: "2",
          c: "3",
        });
      });

      it.each<readonly [args: string, out: string]>([
        ["label pv pv-ebs tier=new --overwrite", "persistentvolume/pv-ebs labeled\n"],
        ["annotate pvc data -n shop note=x", "persistentvolumeclaim/data annotated\n"],
        ["scale sts db -n shop --replicas=4", "statefulset.apps/db scaled\n"],
        ["taint node node-2 key=value:NoSchedule", "node/node-2 tainted\n"],
        ["taint node node-2 key-", "node/node-2 untainted\n"],
        ["cordon node-2", "node/node-2 cordoned\n"],
        ["uncordon node-2", "node/node-2 uncordoned\n"],
        ["create cm never --dry-run=server -o name", "configmap/never\n"],
      ])("%s", async (args, out) => {
        expect(await kubectl.run(...args.split(" "))).toBe(out);
      });
    });

    describe("waits", () => {
      it("for a condition, and for a value", async () => {
        const wait = (what: string) => kubectl.run("wait", what, "pod/web", "-n", "shop", "--timeout=10s");
        expect(await wait("--for=condition=Ready")).toBe("pod/web condition met\n");
        if (isNew)
          expect(await wait("--for=jsonpath={.status.phase}=Running")).toBe("pod/web condition met\n");
      });

      it("for a rollout to be over", async () => {
        const over = kubectl.run("rollout", "status", "deploy/front", "-n", "shop", "--timeout=20s");
        await patchStatus("/apis/apps/v1/namespaces/shop/deployments/front", {
          observedGeneration: 1,
          replicas: 3,
          updatedReplicas: 3,
          readyReplicas: 3,
          availableReplicas: 3,
        });
        expect(await over).toMatch(/deployment "front" successfully rolled out\n$/);
      });

      it("for what is deleted: a finalizer holds, an owner takes its own along", async () => {
        // Not by its name: kubectl drops the first event of such a watch.
        const rows = kubectl.watch("get", "pv", "-w");
        const deleted = kubectl.run("delete", "pv", "pv-ebs", "--timeout=30s");
        await rows.has(/^pv-ebs .*Terminating/m);
        rows.stop();
        await kubectl.run("patch", "pv", "pv-ebs", "--type=merge", "-p", '{"metadata":{"finalizers":null}}');
        expect(await deleted).toBe('persistentvolume "pv-ebs" deleted\n');
        expect(await kubectl.refused("get", "pv", "pv-ebs")).toContain(
          'persistentvolumes "pv-ebs" not found',
        );
        const uid = await kubectl.run("get", "sts", "web", "-o", "jsonpath={.metadata.uid}");
        const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid };
        const owned = JSON.stringify({ metadata: { ownerReferences: [owner] } });
        await kubectl.run("patch", "cm", "cm", "--type=merge", "-p", owned);
        await kubectl.run("delete", "sts", "web", "--wait");
        await kubectl.run("wait", "--for=delete", "cm/cm", "--timeout=10s").catch(() => {});
        expect(await kubectl.refused("get", "cm", "cm")).toContain('configmaps "cm" not found');
      });

      it("for a node to be drained", async () => {
        const drained = await kubectl.run(
          "drain",
          "node-1",
          "--ignore-daemonsets",
          "--force",
          "--timeout=20s",
        );
        expect(drained).toMatch(/pod\/web evicted\n/);
        expect(await kubectl.run("get", "node", "node-1")).toContain("SchedulingDisabled");
        expect(await kubectl.refused("get", "pod", "web", "-n", "shop")).toContain("not found");
      });

      it("for a namespace with what is in it", async () => {
        await kubectl.run("create", "ns", "away");
        await kubectl.run("create", "configmap", "inside", "-n", "away");
        expect(await kubectl.run("delete", "ns", "away")).toContain('namespace "away" deleted');
        expect(await kubectl.refused("get", "ns", "away")).toContain("not found");
      });
    });

    describe("asks", () => {
      it.each<readonly [args: string, out: RegExp]>([
        ["explain pv.spec.awsElasticBlockStore", /volumeID\s+<string> -required-\s+The disk's id/],
        ["explain pvc.spec.resources.requests", /map\[string\](string|Quantity)/],
        [
          "explain csidriver --recursive",
          /tokenRequests\s+<\[\](Object|TokenRequest)>\n\s+audience\s+<string>/,
        ],
        ["explain sts.spec.template.spec.containers.livenessProbe.httpGet", /path\s+<string>/],
        ["explain pods.spec.containers.ports", /containerPort\s+<integer> -required-/],
        ["auth can-i create persistentvolumes", /^yes\n$/],
        ["auth can-i --list", /\*\.\*\s+\[\]\s+\[\]\s+\[\*\]/],
        ...(isNew
          ? ([
              ["explain pv.spec.persistentVolumeReclaimPolicy", /ENUM:\s+Delete\s+Recycle\s+Retain/],
              ["create token default -n shop", /^[\w-]+\.[\w-]+\.[\w-]+\n?$/],
              ["auth whoami", /system:masters/],
            ] as const)
          : []),
      ])("%s", async (args, out) => {
        expect(await kubectl.run(...args.split(" "))).toMatch(out);
      });

      it("and reports that others may not", async () => {
        const asked = ["auth", "can-i", "delete", "persistentvolumes", "--as=jane"];
        expect(await kubectl.ran(asked)).toMatchObject({ out: "no\n", code: 1 });
      });

      it.runIf(!isNew)("and is warned of a version that will go", async () => {
        const { err } = await kubectl.ran(["get", "csinodes.v1beta1.storage.k8s.io"]);
        expect(err).toBe(
          "Warning: storage.k8s.io/v1beta1 CSINode is deprecated in v1.17+, unavailable in v1.22+; use storage.k8s.io/v1 CSINode\n",
        );
      });
    });
  });
}

const configMap = (colour: string) => `
apiVersion: v1
kind: ConfigMap
metadata: {name: applied}
data: {colour: ${colour}}
`;
