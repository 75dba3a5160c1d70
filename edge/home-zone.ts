/** Returns the zone of a tenant's Gate: the first one served here that its token names. Their order there changes nothing. */
export const homeZone = ({ zones }: { readonly zones: readonly string[] }, served: readonly string[]): string =>
  served.find((zone) => zones.includes(zone)) ?? served[0] ?? '';
