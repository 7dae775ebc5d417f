/**
 * The CSI drivers that are registered on this node: filled by the registration handler, read by
 * the mounters. Nothing of it survives a restart; drivers register again from their sockets.
 */

/** A registered driver. */
export interface RegisteredCsiDriver {
  /** The driver's socket. */
  readonly endpoint: string;
  /** The highest version it supports, e.g. `1.0.0`. */
  readonly highestVersion: string;
}

/** The store of registered drivers, by name. */
export interface RegisteredCsiDrivers {
  get(driverName: string): RegisteredCsiDriver | undefined;
  set(driverName: string, driver: RegisteredCsiDriver): void;
  delete(driverName: string): void;
  names(): readonly string[];
  /** Calls `listener` after each change; returns a function that unsubscribes. */
  onChange(listener: () => void): () => void;
}

/** An empty store. */
export function createRegisteredCsiDrivers(): RegisteredCsiDrivers {
  const drivers = new Map<string, RegisteredCsiDriver>();
  const listeners = new Set<() => void>();
  const changed = () => {
    for (const listener of listeners) listener();
  };
  return {
    get: (name) => drivers.get(name),
    set(name, driver) {
      drivers.set(name, driver);
      changed();
    },
    delete(name) {
      if (drivers.delete(name)) changed();
    },
    names: () => [...drivers.keys()].sort(),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** A plugin that knows the registered drivers. */
export interface HasCsiDrivers {
  readonly csiDrivers: RegisteredCsiDrivers;
}

/** Whether a plugin holds the store of registered CSI drivers. */
export function hasCsiDrivers(plugin: object): plugin is HasCsiDrivers {
  return "csiDrivers" in plugin;
}
