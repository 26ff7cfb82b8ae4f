"""List the elements and attributes of SVG that only draw, and so are kept of an upload (decision 0575)."""

_ELEMENTS = """
svg g defs symbol use view path rect circle ellipse line polyline polygon
linearGradient radialGradient stop clipPath mask pattern marker style
filter feBlend feColorMatrix feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap
feDistantLight feDropShadow feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feMerge feMergeNode feMorphology
feOffset fePointLight feSpecularLighting feSpotLight feTile feTurbulence
"""
_ATTRIBUTES = """
id class style role lang viewBox preserveAspectRatio version width height x y x1 y1 x2 y2 cx cy r rx ry fx fy fr dx dy
d points pathLength transform transform-origin gradientTransform gradientUnits spreadMethod offset
patternTransform patternUnits patternContentUnits clipPathUnits maskUnits maskContentUnits mask-type
markerHeight markerUnits markerWidth orient refX refY rotate textLength lengthAdjust startOffset method spacing side
filterUnits primitiveUnits in in2 result mode type values tableValues slope intercept amplitude exponent operator
k1 k2 k3 k4 order kernelMatrix divisor bias targetX targetY edgeMode kernelUnitLength preserveAlpha surfaceScale
diffuseConstant specularConstant specularExponent scale xChannelSelector yChannelSelector azimuth elevation
pointsAtX pointsAtY pointsAtZ z limitingConeAngle radius stdDeviation baseFrequency numOctaves seed stitchTiles
alignment-baseline baseline-shift clip clip-path clip-rule color color-interpolation color-interpolation-filters
cursor direction display dominant-baseline fill fill-opacity fill-rule filter flood-color flood-opacity
font font-family font-feature-settings font-size font-size-adjust font-stretch font-style font-variant font-weight
image-rendering isolation letter-spacing lighting-color marker marker-end marker-mid marker-start mask mix-blend-mode
opacity overflow paint-order pointer-events shape-rendering stop-color stop-opacity stroke stroke-dasharray
stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width text-anchor
text-decoration text-overflow text-rendering unicode-bidi vector-effect visibility white-space word-spacing
writing-mode tabindex focusable
"""
SVG_TEXT_ELEMENTS = frozenset({"text", "tspan", "textPath", "title", "desc"})
SVG_ELEMENTS = SVG_TEXT_ELEMENTS | frozenset(_ELEMENTS.split())
SVG_ATTRIBUTES = frozenset(_ATTRIBUTES.split())
