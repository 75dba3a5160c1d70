import type { Place } from '../place.ts';

const EARTH_RADIUS_KM = 6_371;
/**
 * Kilometres of great circle for each millisecond of round trip: light in fibre covers 200 km a millisecond, there and
 * back 100, and cables are half again as long as the great circle.
 */
const KM_PER_RTT_MS = 67;

/** Estimates the round trip between two places, ms, by their great-circle distance (haversine formula). */
export function rttMs(from: Place, to: Place): number {
  const [north, south] = [radians(from.latitude), radians(to.latitude)];
  const half = (one: number, other: number) => Math.sin((other - one) / 2) ** 2;
  const chord =
    half(north, south) + Math.cos(north) * Math.cos(south) * half(radians(from.longitude), radians(to.longitude));
  return (2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(chord)))) / KM_PER_RTT_MS;
}

const radians = (degrees: number): number => (degrees * Math.PI) / 180;
