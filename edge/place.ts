/** A place on Earth, degrees north and east (WGS 84). */
export interface Place {
  readonly latitude: number;
  readonly longitude: number;
}

/** Reads the place of a request that Cloudflare located; `undefined` elsewhere, and for an address without a place. */
export function placeOf({ cf }: { readonly cf?: unknown }): Place | undefined {
  const { latitude, longitude } = (cf ?? {}) as { readonly latitude?: unknown; readonly longitude?: unknown };
  const place = { latitude: Number.parseFloat(`${latitude}`), longitude: Number.parseFloat(`${longitude}`) };
  const isPlace = Math.abs(place.latitude) <= 90 && Math.abs(place.longitude) <= 180;
  return isPlace ? place : undefined;
}
