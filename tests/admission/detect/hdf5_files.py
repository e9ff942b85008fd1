"""Two small HDF5 files as Keras writes them, one of the oldest format and one of the newest.

Made once by h5py 3.14.0: attributes at the root, and a data set as a layer's weights. `LATEST` with
`libver="latest"` and `track_order=True`. Packed: most of them is room that is not used.
"""

from __future__ import annotations

import base64
import json
import zlib

CONFIG = json.dumps(
    {
        "class_name": "Sequential",
        "config": {"name": "net", "layers": [{"class_name": "Dense", "config": {"units": 4}}]},
    }
)
TRAINING = json.dumps(
    {
        "loss": "mse",
        "optimizer_config": {
            "class_name": "SGD",
            "config": {"learning_rate": 0.01, "momentum": 0.9, "nesterov": True},
        },
    }
)


def _unpacked(text: bytes) -> bytes:
    return zlib.decompress(base64.b85decode(text))


OLD = _unpacked(
    b"c-rllF>ljA6vyxE6s)MNQc*Q+8L&KcsG_uj0j44n>H$$i8ITYPCcUOs>@%D%El^o>3>zPzBO@P!k&nU1Hz;?"
    b"$cd2b5f?&wd`z=rJ-Mjz0bDk~beeydG7wYSEByk*6Lk(2q0@%1&_VxNJuo&zZ>=#SNujgy45O09KYb*Z<;?J"
    b"ITyE6Ntg0AB?m35HeD&lwVKauu1_`09IS>?PqIUrH*goJ}5o)-FY=O63pejVQ^H~KvC!CgelqAQ1l1!?b?ur"
    b"y4lh_7Ls?`%xAIHmXGn$)x}C3hd}J;De!RPrR-t*tw)HbVNkb+DY!G+~EPa-w`&$HAU@{U}J&9t~pR-E+Nt@"
    b"^(Zh4}-|tbiIB;55s|opL#lh5-wMw;Jvtu2)w8&bVNl`**u~lm&v!Y>}8h8x;3bOHaSO>q%y^e)$ZgC599Cy"
    b"VZDM*<*d7%N}Y%VjD~d3V*!^b?N)nBWW-4<?lg+?$lXnOiIfwT9E$*FBa*2zNzNC|yJRpJ3<iV2U@#aAhS{;"
    b"C=M3QM`Pn>7E--TPIm7FqKP2>E>U^PIm@inRdBsAmqvj;)uQmFMc?B=%*(JS3uE$vr=Kst=a+=;*L9dp_acN"
    b"GdpU2l_<$qsMcG{fqd<_+<8Lk@DIia3r|6D2O4GE(py6i{)KkM#4-s|A}Eme%6Z?%54j}5;EqdE1=u=Y2Uwe"
    b"aLy@h5AGFNn-sa&JM*MNJ1aKf?N)_=V)UWhp@izBo4iv92<9Dkpk3)8|p`tIw;ZM`pn<mjS~3"
)
LATEST = _unpacked(
    b"c-rk)Pixdb6n~Sf+YmNox2+VVU<e+UWm^=i2mi3at|+Y3n^M-eJ6*#j6PwJoY7O@4SMcOT`~v*|f?q)W0zG;"
    b"5BnTeXnapeq!Nr4u9_9zh%e;B-_ud<FncvH<d&4r%nz~`Y3{weM5$m?}e|`1+L$B*@Yt5T)t#R==)|@OtM<t"
    b"3fObxP-dY!+AOCtKtta3H)0cuw>LRe&7Q~<^}_LBZSjuSs3a0VgZ4Ezx#4bWu%R1%=P%(N~%pP;Y>;C^0vzS"
    b"Zg777Z15em1hvTEEz0^J{W#N=q?GqIfrm4#ZlY`K3K{27#9(ed2}KxokUk@!kXz>U)9Hw4FgjcKs3aA3C!Df"
    b"+^n#yr*nL=D1&Ga9KrMN}dp(^56?;x|627ZbjBV%KHeSgoikx$c`RUKlGpBxL@EY^}6Mj>IB$}iBCrT*rPn8"
    b"-D<D1h%gG-Op`G4Y&Q823B_@=&m1(K;8gU)@p=&y6ciK`6ciK`6ciK`6#f}{o$jsLCcpRVU<jq*p*I*~GMuY"
    b"1m<5f2uWMJh)xi?!VKl^nyj;)apal*t9n`LKtFyR_gT|hp-M4>3b5x+=H~%;HER+c}c3Gf#qAmSOmJxDHwZU"
    b"ntV;mD497|0GI)CMWPm;YIe#ocSvJUmiTxqCkX9CPj!2nB~<N@|ak7)9-A-wOuY=6r}M1atFcJdm^Q|4KH1y"
    b"I92C)YNt8nF6;eVt;{>!!g5uAq0zBKBIYSp5G#@5zHp3xCS-0|+wg$N"
)
