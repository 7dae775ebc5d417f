import { expect, test } from "vitest";
import { controllerArgs } from "./register-migration-controller.ts";

const values = {
  "provider-type": "aws",
  "csi-migration-kubernetes-version": "1.18",
  "legacy-storage-classes": { default: "kubernetes.io/aws-ebs" },
  "worker-threads": 5,
  "resync-period": 600_000,
} as const;

test("the controller is given what its flags say", async () => {
  expect(await controllerArgs(values)).toEqual({
    type: "aws",
    csiMigrationKubernetesVersion: "1.18",
    storageClassNameToLegacyProvisioner: { default: "kubernetes.io/aws-ebs" },
    controllerOptions: { workers: 5, resyncMs: 600_000 },
  });
});

test.each([
  [{ "provider-type": "" }, "--provider-type is required"],
  [{ "csi-migration-kubernetes-version": "" }, "--csi-migration-kubernetes-version is required"],
  [
    { "csi-migration-kubernetes-version": "newest" },
    '--csi-migration-kubernetes-version: "newest" is not a version: give one like 1.18.5',
  ],
])("%j: %s", async (given, message) => {
  await expect(controllerArgs({ ...values, ...given })).rejects.toThrow(message);
});
