/** Paths below `/api/upstream`, by the rule that each of them tests. */

/** Separated by white space, with backslashes as they stand. */
function paths(text: TemplateStringsArray): string[] {
  return String.raw(text).trim().split(/\s+/);
}

/** What leads out of `/v1/` or to the tokens, or would at a server that reads the path differently. */
export const REFUSED_PATHS: Readonly<Record<string, readonly string[]>> = {
  'dot segments, which the server resolves before the gateway sees them': paths`
    /v1/.. /v1/../admin /v1/a/../../admin /v1//../../admin /v1/..?/v1/ /../v1/me /..`,
  'encoded dot segments': paths`/v1/%2e%2e/admin /v1/.%2E/admin /v1/%2e%2e /v1/%2e%2e%2fadmin /%2e%2e/v1/me`,
  'what is encoded more than once': [
    ...paths`
    /v1/%252e%252e/admin /v1/.%252e/admin /v1/%252525252e%252525252e/admin /v1/%25%32%65%25%32%65/admin
    /v1/%%32%65%%32%65/admin /v1/x%252fy /v1/x%255cy /v1/x%2500y /v1/x%25252525y /v1/a/..%25c0%25afb`,
    '/v1/%252e%252e ',
  ],
  'dot segments with parameters': paths`/v1/..; /v1/..;x=1/admin /v1/..%3bx/admin /v1/%252e%252e%253bx /v1/.;/a`,
  'segments of parameters alone, which some servers drop': paths`/v1/; /v1/;x /v1/a//;b /v1/a/%3bx /v1/a/%253B`,
  'endpoints that respond with tokens': paths`
    /v1/auth /v1/auth/ /v1/AUTH/Refresh /v1/%61uth/idp /v1/%2561uth/idp /v1//auth/idp /v1/auth;x/idp
    /v1///;x=1;y//auth/refresh /v1;x/auth/refresh /v1/%253bx/auth/refresh /v1/%20;x/auth/refresh
    /v1/...;x/%20./auth/refresh /v1/...;%ef%bc%8fx/auth/refresh /v1/x/..%20/auth/refresh /v1/%20auth/refresh
    /v1/%C2%A0auth%E3%80%80/refresh /v1/auth.%20.;x/refresh /v1/auth%3fx/refresh /v1/auth%23x/refresh
    /v1/%20;x//auth/idp`,
  'letters, dots and slashes of full width': paths`
    /v1/%EF%BC%8E%EF%BC%8E/a /v1/x%EF%BC%8F../auth/refresh /v1/auth%EF%BC%9Bx/refresh /v1/x/%E2%80%A5/auth/refresh
    /v1/%EF%BD%81%EF%BD%95%EF%BD%94%EF%BD%88/refresh /v1/x%EF%BC%BC..%EF%BC%BCauth/refresh`,
  'slashes and backslashes, encoded or not': paths`
    /v1/..%2fadmin /v1%2f..%2fadmin /v1/a%2Fb /v1/%2f%2fevil.test /v1/..%5cadmin /v1/a%5Cb %2fv1%2fme
    %5cv1%5cme /v1\..\admin /v1/..\admin \..\admin`,
  'overlong and broken UTF-8': paths`
    /v1/%c0%ae%c0%ae/admin /v1/..%C0%AFadmin /v1/..%e0%80%afadmin /v1/..%f0%80%80%afadmin /v1/a%80b
    /v1/..%c0%9vadmin /v1/a%ffb /v1/%ed%a0%80`,
  'broken escapes': [...paths`/v1/% /v1/%2 /v1/%zz /v1/..%u2215admin /v1/%u002e%u002e/admin`, '/v1/%2 e'],
  'control characters': [
    ...paths`/v1/a%00b /v1/..%00/admin /v1/a%09b /v1/a%0d%0aX-Injected:%201 /v1/a%1fb /v1/a%7fb`,
    '/v1/a\x7fb',
    '/v1/a\x00b',
    '/v1/a\x1fb',
    '/v1/me\tHTTP/1.1\t/admin',
    '/v1/a\nb',
    '/v1/.\t./admin',
  ],
  'a query or a fragment after dot segments, once it is decoded': paths`
    /v1/..%3f /v1/..%23 /v1/a/..%3fb /v1/%2e%2e%3f /v1/..%253f /v1/.%3f /v1/..%20%3f`,
  'what a server that drops unseen characters would read': paths`
    /v1/%C2%85auth/refresh /v1/auth%C2%85/refresh /v1/%C2%AD/auth/refresh /v1/au%C2%ADth/refresh
    /v1/auth%E2%80%8B/refresh /v1/%25E2%2580%258Bauth /v1/au%E2%80%8Dth/idp /v1/%EE%80%80auth /v1/au%EF%B8%8Fth/idp
    /v1/.%E2%80%8D./admin /v1/%E2%80%8E../admin /v1/..%EF%BB%BF/admin /v1/..%E2%81%A6;x/admin /v1/%E2%80%AE./me
    /v1/%E2%80%8C;x /v1/a%E2%80%8D%2Fb /v1/a%C2%AD%5Cb /v1/..%F3%A0%81%A7%EF%BC%8Fadmin /v1/%F3%B0%80%80..
    /v1/%25%E2%80%8D2e%25%E2%80%8D2e/admin /v1/a%25%E2%80%8D2fb /v1/%EF%BC%8E%E2%80%8D%EF%BC%8E/a`,
  'code points that are no characters': paths`/v1/a%EF%BF%BEb /v1/a%EF%B7%90b /v1/a%F0%9F%BF%BFb`,
  fragments: paths`/v1/a#b /v1/#/../admin /v1/a?b#c #/v1/me /#/v1/me`,
  'what is not below /v1/': [
    '',
    ...paths`/ /v1 /v1? /V1/me /v1x/me /v%31/me /%76%31/me /v1%2fme /v1%20/me /v2/me /v10/me /.v1/me /v1./me
    /v1;/me /;/v1/me //v1/me //evil.test/v1/me ///evil.test/v1/me /\evil.test/v1/me ?/v1/me /?/v1/me x/v1/me`,
  ],
  'users, ports and host names, behind a base address without a path': paths`
    @evil.test/v1/me :secret@evil.test/v1/me :80/v1/me :81/v1/me .evil.test/v1/me %40evil.test/v1/me
    \@evil.test/v1/me`,
};

/** The server resolves them before the gateway sees them. */
export const RESOLVED_PATHS: readonly string[] = paths`/v1/. /v1/./me /v1/a/.. /v1/../v1/me`;

/** Names with characters that cannot be seen: joiners, direction marks, soft hyphens, variants and private use. */
const NAMES = [
  // Persian, Kurdish, Urdu, Arabic, Hebrew and Yiddish
  ...[
    '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645',
    'نیم\u200cفاصله',
    'ئه\u200cو',
    'گیت\u200c مالا',
    'نغم!\u200f',
    '\u061cعود 1',
  ],
  ...['\u200fשיר 1\u200e', 'ליד\u200f (live)'],
  // Hindi, Marathi, Nepali, Bengali, Gujarati, Kannada, Malayalam, Tamil, Telugu and Sinhala
  ...[
    'क्\u200dष',
    'दऱ्\u200dया',
    'गर्\u200dयो',
    'र\u200d্যাপ',
    'ક્\u200cષ',
    'ರ\u200d್ಯ',
    'അവന്\u200d',
    'க்\u200cஷ',
    'రాజ్\u200cకుమార్',
  ],
  ...['ශ්\u200dරී ලංකා', 'ක්\u200dරීඩා'],
  // Khmer, Thai, Burmese, Mongolian, German, Russian, Japanese and a mix of directions
  ...[
    'ភ្លេង\u200bខ្មែរ',
    'เพลง\u200bไทย',
    'မြန်မာ\u200bဂီတ',
    'ᠮᠣᠩᠭ\u180eᠠ',
    'Donau\u00addampf',
    'ба\u00adян',
    '葛\u{e0100}城',
  ],
  ...['\u2068Ada\u2069 – حيّ', '\u202bعود\u202c', 'No\u2060Break', '\ufeffBOM'],
  // Emoji, and characters of a font of one's own
  ...[
    '👩\u200d🎤',
    '🏳\ufe0f\u200d🌈',
    '🏴\u{e0067}\u{e0062}\u{e007f}',
    '\uf8ff Music',
    'a\ue000',
    '\u{f0000}',
  ],
];

/** Each reaches the upstream unchanged, with the session's token. */
export const FORWARDED_PATHS: readonly string[] = [
  ...NAMES.map((name) => `/v1/playlists/${encodeURIComponent(name)}`),
  ...paths`
  /v1/ /v1/me /v1/0b5e7c1a-66b0-4d7e-9d6c-1f0f6a0d1c11/content /v1/A-Z.a_z~9 /v1/v1/v2 /v1/a.b..c /v1/...
  /v1/..a/b../.c /v1/.hidden/end. /v1//a///b// /v1/a;.. /v1/a;b=c,d:e@f!$&()*+= /v1/@evil.test/x
  /v1//evil.test/x /v1/http://evil.test/x /v1/100%25/a%25b /v1/x%252525y /v1/a%20b+c /v1/a%3Fb%23c%26d
  /v1/caf%C3%A9 /v1/%F0%9F%8E%B5 /v1/%EF%BC%A1%EF%BC%8F%EF%BC%A2 /v1/%EF%BD%81/auth /v1/a? /v1/a??b
  /v1/library?page=2&sort=-date&tag=a%20b /v1/a?x=../../admin /v1/a?x=%2e%2e%2f&y=%00&z=%zz /v1/a?x=\..\
  /v1/a?b=https://evil.test/?c=d /v1/authors /v1/music/auth /v1/auth-log /v1/auth.json /v1/au.th
  /v1/a;auth/x /v1/a%20uth /v1/x/.../auth /v1/.auth /v1/me?next=/v1/auth/idp`,
];

/** The two public paths, with every character that an id may have. */
export const PUBLIC_PATHS: readonly string[] = paths`
  /v1/music/public/abc /v1/music/public/A-Z.a_z~9/content /v1/music/public/0 /v1/music/public/...
  /v1/music/public/.hidden/content /v1/music/public/-/content /v1/music/public/content/content`;

/** Close to the public paths, but forwarded with the session's token. */
export const NEARLY_PUBLIC_PATHS: readonly string[] = paths`
  /v1/music/public /v1/music/public/ /v1/music/public//content /v1/music/public/abc/ /v1/music/Public/abc
  /v1/music/public/abc/content/ /v1/music/public/abc/content/more /v1/music/public/abc/Content
  /v1//music/public/abc /v1/v1/music/public/abc /v1/x/v1/music/public/abc /v1/music/public/?/content
  /v1/music/public/abc? /v1/music/public/abc?a /v1/music/public/abc/content? /v1/music/public/abc?/content
  /v1/music/public/a%62c /v1/music/public/abc%3Fx=1 /v1/music/public/abc/%63ontent /v1/music/public/a+b
  /v1/music/public/a;b /v1/music/public/a@b /v1/music/public/a:b /v1/music/public/%C3%A9`;
