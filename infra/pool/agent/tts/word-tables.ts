const table = (pairs: string): ReadonlyMap<string, string> =>
  new Map(pairs.split(';').map((pair) => pair.trim().split('=') as [string, string]));

/** Short forms with a full stop behind them, in lower case and without it. */
export const shortForms = table(
  'mr=mister;mrs=missus;ms=miss;dr=doctor;prof=professor;jr=junior;sr=senior;rev=reverend;gen=general;col=colonel;' +
    'capt=captain;lt=lieutenant;sgt=sergeant;gov=governor;sen=senator;rep=representative;pres=president;vs=versus;' +
    'etc=et cetera;e.g=for example;i.e=that is;approx=approximately;dept=department;est=established;fig=figure;' +
    'inc=incorporated;ltd=limited;co=company;corp=corporation;vol=volume;pp=pages;ave=avenue;blvd=boulevard;rd=road;' +
    'jan=january;feb=february;mar=march;apr=april;jun=june;jul=july;aug=august;sep=september;sept=september;' +
    'oct=october;nov=november;dec=december;mon=monday;tue=tuesday;wed=wednesday;thu=thursday;fri=friday;a.m=ay em;p.m=pee em',
);

/** Units behind a number. */
export const units = table(
  'km=kilometers;m=meters;cm=centimeters;mm=millimeters;kg=kilograms;g=grams;mg=milligrams;l=liters;ml=milliliters;' +
    'mph=miles per hour;kmh=kilometers per hour;lb=pounds;lbs=pounds;oz=ounces;ft=feet;hz=hertz;khz=kilohertz;' +
    'mhz=megahertz;ghz=gigahertz;kb=kilobytes;mb=megabytes;gb=gigabytes;tb=terabytes;ms=milliseconds;min=minutes;' +
    'h=hours;hrs=hours;s=seconds;sec=seconds;kw=kilowatts;am=ay em;pm=pee em;k=thousand;x=times',
);

/** One and many, and the same of their hundredth part. */
export const currencies: ReadonlyMap<string, readonly [string, string, string, string]> = new Map([
  ['$', ['dollar', 'dollars', 'cent', 'cents']],
  ['€', ['euro', 'euros', 'cent', 'cents']],
  ['£', ['pound', 'pounds', 'penny', 'pence']],
  ['¥', ['yen', 'yen', 'sen', 'sen']],
]);

/** Signs that people say. */
export const signs: ReadonlyMap<string, string> = new Map([
  ['&', ' and '],
  ['@', ' at '],
  ['%', ' percent '],
  ['+', ' plus '],
  ['=', ' equals '],
  ['°', ' degrees '],
  ['×', ' times '],
  ['÷', ' divided by '],
  ['<', ' less than '],
  ['>', ' more than '],
  ['€', ' euros '],
  ['£', ' pounds '],
  ['$', ' dollars '],
]);

export const months = 'january february march april may june july august september october november december'.split(
  ' ',
);

/** How letters are called. */
export const letterNames: ReadonlyMap<string, string> = new Map(
  'ay,bee,see,dee,ee,eff,gee,aitch,eye,jay,kay,el,em,en,oh,pee,cue,are,ess,tee,you,vee,double you,ex,why,zee'
    .split(',')
    .map((name, at) => [String.fromCharCode(97 + at), name]),
);

/** Letters that lose more than a mark when they become Latin ones without. */
export const letters: ReadonlyMap<string, string> = new Map([
  ['ß', 'ss'],
  ['æ', 'ae'],
  ['œ', 'oe'],
  ['ø', 'o'],
  ['ł', 'l'],
  ['đ', 'd'],
  ['ð', 'd'],
  ['þ', 'th'],
  ['ı', 'i'],
]);
