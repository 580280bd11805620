/** Segments, prefixes and whole targets that two servers may read differently. */

import { words } from './choices.ts';

export const ODD_SEGMENTS = [
  ...words(
    '. .. %2e %2E%2e .%2e ..;x ..; .;/ ... %252e%252e %25252e%25252e ..%00 ..%2f %2f ..%2F..%2f %252f',
  ),
  ...words('%5c ..%5c ..\\ \\ %255c %c0%af %c0%ae%c0%ae %e0%80%af % %% %zz %u002e %2 %00 %0a %7f %ff \xff'),
  ...words('%0d%0aX-Injected:%201 \xc3\xa9 \x7f # #/../ auth AUTH %61uth auth;x auth%2frefresh auth%2525'),
  ...words('@evil.test http://evil.test/ :80 // /// /evil.test * | ^ ` {x} " \' <s> v1 ..%ef%bc%8f \u00b7'),
  ...['', ' ', '\t', '&', ';a=b'],
];

/** Segments with parameters. */
export const PARAMETER_SEGMENTS = [
  ...words('; ;x ;x=1 ;; ;a=b;c x;a=b x; x;a=%2f %3bx %3B %253bx a;b=.. ;v1 ;.. v1;x x;/auth'),
  ...words(';/auth/refresh %20;x \xef\xbc\x9bx %ef%bc%9bx'),
];

export const AUTH_PATHS = [
  ...words('auth/refresh auth/logout auth/idp auth auth/ /auth/refresh Auth/refresh auth//refresh'),
  ...words('auth;x/refresh AUTH;x ;x/auth/refresh ;/auth auth;/idp %61%75th;a=b/refresh auth%3bx/idp'),
  ...words('auth./refresh auth../refresh auth%2e auth%20/refresh %20auth auth%09 auth%20. auth.;x'),
  ...words('%20/auth./refresh %252561uth aut%68 %41UTH/idp auth%2frefresh auth%c2%a0/refresh'),
  ...words('%e3%80%80auth auth%e2%80%a4'),
  // A letter that becomes another one when a server folds it: full-width, bold, ordinal, superscript.
  ...words('%ef%bd%81uth/refresh %ef%bc%a1UTH %f0%9d%90%9auth %c2%aauth/idp \xef\xbd\x81uth %E1%B5%83uth'),
  ...words('auth%ef%bc%8frefresh auth%ef%bc%9bx auth%ef%bc%8e/idp %ef%bc%8fauth x;/../auth'),
  ' auth',
  // These are not the token endpoints.
  ...words('authors xauth me/auth auth-x a.uth auth%c3%a9 au%cc%88th'),
];

export const ODD_PREFIXES = [
  ...words('/api/upstream/V1/ /api/upstream/v1%2f /api/upstream/%76%31/ /api/upstream/v1/../v1/'),
  ...words('/api/upstream/./v1/ /api//upstream/v1/ //api/upstream/v1/ /API/upstream/v1/ /api%2fupstream/v1/'),
  ...words('/api/upstream/v1/../../ /api/upstream/v1\\ /api/upstream\\v1/ /api/upstream@evil.test/v1/'),
  ...words('/api/upstream.evil.test/v1/ /api/upstream:80/v1/ /api/health/../upstream/v1/'),
  '/api/health%2f..%2fupstream/v1/',
];

export const ODD_TARGETS = [
  ...words(
    '* / // ? /api /api/ /api/health/ /api/health? /api/health# /API/health /x/api/health //api/health',
  ),
  ...words('/api/auth/idp/ /api/auth/session? /api/auth//session /api/music/..;/auth/session'),
  ...words('/api/auth/session%00 /constructor /__proto__ /api/upstream/v1/me?/api/health /a://b/api/health'),
  ...words('/api/health?/api/auth/session api/health studio.test:443 /api/auth/session;x'),
  '',
];

export const QUERIES = words(
  '? ?a=b ?a=b&a=c ?q=%20%zz ?../../ ?/../.. ?/api/health ?a=%0d%0ab ?\xff ?a#b ?a=..%2f ?? ?"<>',
);
