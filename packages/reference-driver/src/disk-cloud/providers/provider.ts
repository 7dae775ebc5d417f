/** What distinguishes one provider of disks from another: names, places, limits, devices, words. */
import { CloudError, type CloudErrorCode, type CloudProvider } from "@longshore/volumes";

/** A disk that is about to be made. */
export interface NewDisk {
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  /** 32 random hexadecimal digits, for providers that number their disks. */
  readonly hex: string;
}

/** A disk on an instance, as names of devices are made of it. */
export interface PlacedDisk {
  /** The provider's id. */
  readonly id: string;
  readonly name: string;
  /** The cloud's own number of it: 17 hexadecimal digits. */
  readonly hex: string;
  /** Its number on the instance, from 0 on. */
  readonly slot: number;
}

/** A provider. The ids are those that handles of translated volumes name: docs/behaviour/volume-plugins.md 8.3. */
export interface Provider {
  readonly name: CloudProvider;
  /** The id of a disk with this name. @throws CloudError InvalidArgument where it cannot have it */
  idOf(disk: NewDisk): string;
  /** Whether disks are found by their names: two of one name are one, whatever else their ids contain. Else the id is the name. */
  readonly isNumbered: boolean;
  /** The form in which two ids of one disk are equal; default the id itself. */
  canonicalId?(id: string): string;
  /** Where disks are: nowhere in particular, in one zone, or in one and (where asked for) replicated to others. */
  readonly places: "anywhere" | "zone" | "zones";
  /** Most disks of this provider on an instance; undefined: no limit; `instance`: what the instance says. */
  readonly attachLimit: number | "instance" | undefined;
  /**
   * The device's name below the instance's directory of devices; undefined: the device has no name of the provider. Of a share
   * there is no device.
   */
  deviceName?(disk: PlacedDisk): string;
  /** What is attached. */
  readonly attaches: "device" | "share";
  /** Policies under which disks can be made, where the provider has such; those of a cloud for which none are given. */
  readonly storagePolicies?: readonly string[];
  /** How a machine can cache a disk, where the provider lets the caller say so; the first is the default. */
  readonly cachingModes?: readonly string[];
  /** Whether callers see the number of the disk on the instance. */
  readonly showsLun?: boolean;
  /** Whether several instances may have the disk, all of them read-only. */
  readonly sharesReaders?: boolean;
  /** What has to be proved at each attach: that the caller knows the key of the share's account, or that of a user. */
  readonly asksFor?: "account" | "user";
  /** The provider's own words for failures. */
  readonly codes: Readonly<Partial<Record<CloudErrorCode, string>>>;
}

/** A name that can stand in an id and in a path. @throws CloudError InvalidArgument */
export function plainName(what: string, name: string): string {
  const isPlain = !/[/\\#[\]\0]/.test(name) && name !== "." && name !== ".." && name !== "";
  if (!isPlain || Buffer.byteLength(name) > 200) {
    throw new CloudError(
      "InvalidArgument",
      `${what} cannot be "${name.slice(0, 40)}": use 1 to 200 bytes without / \\ # [ ]`,
    );
  }
  return name;
}
