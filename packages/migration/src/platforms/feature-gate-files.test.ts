import { describe, expect, it } from "vitest";
import {
  kubeletConfigGates,
  manifestGates,
  withKubeletGates,
  withManifestGates,
} from "./feature-gate-files.ts";

const gates = { CSIMigration: true, CSIMigrationAWS: true };
const kubelet = (block: string) =>
  `apiVersion: kubelet.config.k8s.io/v1beta1 # as kubeadm wrote it\nkind: KubeletConfiguration\ncgroupDriver: systemd\n${block}rotateCertificates: true\n`;
const manifest = (command: string) => `apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 10.0.0.1:6443
  name: kube-controller-manager
  namespace: kube-system
spec:
  containers:
  - command:
${command}    image: k8s.gcr.io/kube-controller-manager:v1.20.2 # pinned
    name: kube-controller-manager
  hostNetwork: true
`;

describe("a kubelet's configuration", () => {
  it.each<readonly [string, string, string]>([
    [
      "without gates",
      "",
      "rotateCertificates: true\nfeatureGates:\n  CSIMigration: true\n  CSIMigrationAWS: true\n",
    ],
    [
      "with others, and comments",
      "featureGates: # ours\n    RotateKubeletServerCertificate: true\n    CSIMigrationAWS: false # not yet\n",
      "featureGates: # ours\n    CSIMigration: true\n    RotateKubeletServerCertificate: true\n    CSIMigrationAWS: true # not yet\n",
    ],
    [
      "with a map on one line",
      "featureGates: {CSIMigrationAWS: false, A: true}\n",
      "featureGates:\n  CSIMigrationAWS: true\n  A: true\n  CSIMigration: true\n",
    ],
    [
      "with an empty map",
      "featureGates: {}\n",
      "featureGates:\n  CSIMigration: true\n  CSIMigrationAWS: true\n",
    ],
  ])("%s gets them, and keeps the rest", (_what, block, expected) => {
    const before = kubelet(block);
    const after = withKubeletGates(before, gates);
    expect(after).toContain(expected);
    expect(kubeletConfigGates(after)).toMatchObject(gates);
    expect(after).toContain("# as kubeadm wrote it");
    expect(withKubeletGates(after, gates)).toBe(after);
  });

  it.each(["- a\n", "a: [", "featureGates: yes please\n", "featureGates: &g\n  A: true\n"])(
    "%j is refused rather than spoilt",
    (text) => {
      expect(() => withKubeletGates(text, gates)).toThrow(expect.objectContaining({ name: "NodeFileError" }));
    },
  );
});

describe("a manifest of a static pod", () => {
  const plain = "    - kube-controller-manager\n    - --bind-address=127.0.0.1\n";

  it("without the flag gets it behind the program, and keeps the rest", () => {
    const after = withManifestGates(manifest(plain), gates);
    expect(after).toBe(
      manifest(
        "    - kube-controller-manager\n    - --feature-gates=CSIMigration=true,CSIMigrationAWS=true\n    - --bind-address=127.0.0.1\n",
      ),
    );
    expect(withManifestGates(after, gates)).toBe(after);
  });

  it("with the flag keeps its other gates and the comment", () => {
    const before = `${plain}    - --feature-gates=A=false,CSIMigrationAWS=false # ours\n`;
    const after = withManifestGates(manifest(before), gates);
    expect(after).toContain("    - --feature-gates=A=false,CSIMigrationAWS=true,CSIMigration=true # ours\n");
    expect(manifestGates(after)).toEqual({ A: false, ...gates });
  });

  it.each<readonly [string, string]>([
    ["a command on one line", '    ["kube-controller-manager", "--feature-gates=A=true"]\n'],
    ["a gate without a value", `${plain}    - --feature-gates=CSIMigration\n`],
    ["no command", ""],
  ])("%s is refused rather than spoilt", (_what, command) => {
    expect(() => withManifestGates(manifest(command), gates)).toThrow(
      expect.objectContaining({ name: "NodeFileError" }),
    );
  });
});
