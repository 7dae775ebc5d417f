/** Volume ids of the in-tree EBS plugin: `vol-…`, or `aws://<zone>/vol-…` as its provisioner writes them. */
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";

/** The plugin's name. */
export const awsEbsPluginName = "kubernetes.io/aws-ebs";

/** The spec is not one of an EBS volume, or its id cannot be read. */
export class EbsVolumeError extends Error {
  override readonly name = "EbsVolumeError";
}

/** The EBS source of a spec. */
export interface EbsSource {
  readonly volumeID: string;
  readonly fsType: string;
  readonly partition: number;
  readonly readOnly: boolean;
}

/** Reads the EBS source, inline or of a PersistentVolume. @throws EbsVolumeError when there is none */
export function ebsSourceOf(spec: VolumeSpec): EbsSource {
  const source = spec.volume?.awsElasticBlockStore ?? spec.persistentVolume?.spec?.awsElasticBlockStore;
  if (source == null) {
    throw new EbsVolumeError(`volume "${specName(spec)}": awsElasticBlockStore is missing`);
  }
  const inline = spec.volume?.awsElasticBlockStore != null;
  return {
    volumeID: source.volumeID,
    fsType: source.fsType ?? "",
    partition: source.partition ?? 0,
    readOnly: inline ? source.readOnly === true : spec.readOnly,
  };
}

/** `aws://<zone>/<diskId>`. */
export function ebsVolumeID(zone: string, diskId: string): string {
  return `aws://${zone}/${diskId}`;
}

/** The provider's disk id in a volume id of either form. @throws EbsVolumeError */
export function diskIdOf(volumeID: string): string {
  const url = /^aws:\/\/[^/]*\/(.*)$/.exec(volumeID);
  const id = url === null ? volumeID : (url[1] ?? "");
  if (!/^vol-[^/]*$/.test(id)) {
    throw new EbsVolumeError(`volumeID "${volumeID}": expected vol-… or aws://<zone>/vol-…`);
  }
  return id;
}
