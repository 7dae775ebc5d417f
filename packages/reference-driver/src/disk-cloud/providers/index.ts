/** The providers that the cloud speaks for. Another one is a file beside these, and an entry here. */
import type { CloudCaller, CloudProvider } from "@longshore/volumes";
import { awsEbs } from "./aws-ebs.ts";
import { azureDisk } from "./azure-disk.ts";
import { accountOf, azureFile } from "./azure-file.ts";
import { cinder } from "./cinder.ts";
import { gcePd } from "./gce-pd.ts";
import { portworxVolume } from "./portworx-volume.ts";
import type { Provider } from "./provider.ts";
import { rbd } from "./rbd.ts";
import { vsphereVolume } from "./vsphere-volume.ts";

export type { Provider };
export { accountOf };

const providers: Readonly<Record<CloudProvider, Provider>> = {
  "aws-ebs": awsEbs,
  "gce-pd": gcePd,
  "azure-disk": azureDisk,
  "azure-file": azureFile,
  cinder,
  "vsphere-volume": vsphereVolume,
  "portworx-volume": portworxVolume,
  rbd,
};

/** The provider that a caller means, or whose disk a record is: that of EBS when none is named. */
export function providerOf({ provider = "aws-ebs" }: Pick<CloudCaller, "provider">): Provider {
  return providers[provider];
}
