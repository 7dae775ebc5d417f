/** What an assessment says of the parameters of drivers is what the drivers of this repository do. */
import { expect, test } from "vitest";
import { parameterRefusal } from "../../../packages/migration/src/assess/driver-facts.ts";
import { azureDisk } from "../../../packages/reference-driver/src/driver/kinds/azure-disk.ts";
import { azureFile } from "../../../packages/reference-driver/src/driver/kinds/azure-file.ts";
import { cinder } from "../../../packages/reference-driver/src/driver/kinds/cinder.ts";
import { ebs } from "../../../packages/reference-driver/src/driver/kinds/ebs.ts";
import { gcePd } from "../../../packages/reference-driver/src/driver/kinds/gce-pd.ts";

test.each([
  ["ebs.csi.aws.com", ebs],
  ["pd.csi.storage.gke.io", gcePd],
  ["disk.csi.azure.com", azureDisk],
  ["file.csi.azure.com", azureFile],
  ["cinder.csi.openstack.org", cinder],
] as const)("the parameters that %s refuses", (driver, { parameters }) => {
  for (const name of parameters ?? [])
    expect([name, parameterRefusal(driver, name, "x")]).toEqual([name, undefined]);
  const isRefused = parameterRefusal(driver, "noSuchParameter", "x") !== undefined;
  expect(isRefused).toBe(parameters !== undefined);
  expect(parameterRefusal(driver, "csi.storage.k8s.io/fstype", "xfs")).toBeUndefined();
});
