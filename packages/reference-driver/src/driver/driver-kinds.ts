/**
 * The eight drivers that in-tree plugins migrate to, as far as the reference driver stands in for them (`kinds/`). A volume id
 * has the form that translating an in-tree volume produces, so that it names the very disk that the in-tree plugin made.
 * Source: docs/behaviour/volume-plugins.md 8.2 and 8.3.
 */
import type { CloudProvider } from "@longshore/volumes";
import { azureDisk } from "./kinds/azure-disk.ts";
import { azureFile } from "./kinds/azure-file.ts";
import { cinder } from "./kinds/cinder.ts";
import type { DriverKind } from "./kinds/driver-kind.ts";
import { ebs } from "./kinds/ebs.ts";
import { gcePd } from "./kinds/gce-pd.ts";
import { portworx } from "./kinds/portworx.ts";
import { rbd } from "./kinds/rbd.ts";
import { vsphere } from "./kinds/vsphere.ts";

/** The kinds by driver name. */
export const driverKinds: Readonly<Record<string, DriverKind>> = {
  "ebs.csi.aws.com": ebs,
  "pd.csi.storage.gke.io": gcePd,
  "cinder.csi.openstack.org": cinder,
  "disk.csi.azure.com": azureDisk,
  "file.csi.azure.com": azureFile,
  "csi.vsphere.vmware.com": vsphere,
  "pxd.portworx.com": portworx,
  "rbd.csi.ceph.com": rbd,
};

/**
 * The kind of a driver. One that is not of the eight serves disks of EBS, with a topology key of its own, and is indifferent to
 * parameters.
 */
export function driverKind(driverName: string): DriverKind {
  const known = Object.hasOwn(driverKinds, driverName) ? driverKinds[driverName] : undefined;
  return known ?? { ...ebs, topologyKey: `topology.${driverName}/zone`, parameters: undefined };
}

/** The provider whose disks the driver of this name serves: who calls the cloud for it says so (`CloudCaller.provider`). */
export function providerOfDriver(driverName: string): CloudProvider {
  return driverKind(driverName).provider;
}
