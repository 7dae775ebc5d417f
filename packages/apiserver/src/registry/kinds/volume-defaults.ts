/** What the API fills in for volume sources (core/v1 defaults.go). */
import { type Loose, mapItems, withDefaults, withMember } from "./shaping.ts";

const sourceDefaults: Readonly<Record<string, Loose>> = {
  azureDisk: { cachingMode: "ReadWrite", fsType: "ext4", readOnly: false, kind: "Shared" },
  hostPath: { type: "" },
  iscsi: { iscsiInterface: "default", lun: 0 },
  rbd: { pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" },
  scaleIO: { storageMode: "ThinProvisioned", fsType: "xfs" },
};

const podSourceDefaults: Readonly<Record<string, Loose>> = {
  ...sourceDefaults,
  configMap: { defaultMode: 420 },
  secret: { defaultMode: 420 },
  downwardAPI: { defaultMode: 420 },
};

function fill(volume: Loose, defaults: Readonly<Record<string, Loose>>): Loose {
  let result = volume;
  for (const key of Object.keys(defaults)) {
    if (volume[key] !== undefined)
      result = withMember(result, key, (s) => withDefaults(s, defaults[key] ?? {}));
  }
  return result;
}

/** Files that show the pod: in which version of the API its fields are named. */
function filesDefaults(source: Loose): Loose {
  return withMember(source, "items", (items) =>
    mapItems(items, (item) =>
      withMember(
        withMember(item, "fieldRef", (ref) => withDefaults(ref, { apiVersion: "v1" })),
        "resourceFieldRef",
        (ref) => withDefaults(ref, { divisor: "0" }),
      ),
    ),
  );
}

/** The members that a volume of a pod or a template gets. */
export function volumeDefaults(volume: Loose): Loose {
  const filled = withMember(fill(volume, podSourceDefaults), "downwardAPI", filesDefaults);
  return withMember(filled, "projected", (projected) =>
    withMember(withDefaults(projected, { defaultMode: 420 }), "sources", (sources) =>
      mapItems(sources, (s) =>
        withMember(withMember(s, "downwardAPI", filesDefaults), "serviceAccountToken", (t) =>
          withDefaults(t, { expirationSeconds: 3600 }),
        ),
      ),
    ),
  );
}

/** The members that the spec of a volume gets for its source. */
export function persistentSourceDefaults(spec: Loose): Loose {
  return fill(spec, { ...sourceDefaults, scaleIO: { storageMode: "ThinProvisioned", fsType: "xfs" } });
}
