//! The keywords, by what they announce. They are compared without case and diacritics.
//!
//! `*` before or behind a keyword: letters may touch it there (`telefon*` is in `Telefonnummer`). A keyword in capitals counts
//! in capitals only. The keywords of the national ids are with the ids.

use super::Word;

#[rustfmt::skip]
pub(super) const WORDS: &[(Word, &[&str])] = &[
    (Word::Phone, &[
        "phone", "phones", "*phone", "phonenumber", "phonenr", "telephone", "tel", "tele", "telno", "telnr", "cell", "cellphone", "cellular", "mobile",
        "mobiles", "mobilenumber", "mob", "landline", "fax", "telefax", "telefaks", "facsimile", "pager", "whatsapp", "viber", "sms", "gsm", "hotline", "voicemail",
        "direct line", "direct dial", "switchboard", "desk:", "office:", "home:", "work:", "direct:", "home phone", "work phone", "contact no", "contact number", "msisdn", "call us", "call me",
        "telefon*", "*telefon", "*telefonnummer", "mobiltelefon*", "festnetztelefon*", "diensttelefon*", "privattelefon*", "handy", "handynummer", "handynr", "mobil", "mobilnummer", "mobilnr", "mobiltelefon*", "mobilfunk*", "festnetz*", "rufnummer", "rückruf*",
        "téléphone", "portable", "fixe", "télécopie", "numéro de portable",
        "teléfono", "telefonos", "telf", "teléf", "tfno", "tlfno", "móvil", "celular", "cel", "fijo",
        "telefone", "telemóvel", "telemovel", "fone", "telemovil",
        "cellulare", "recapito", "recapito telefonico", "telefonino",
        "telefoon*", "mobiel", "mobiele nummer", "tlf", "tlf.nr", "tfn", "mobilnr", "puhelin*", "puh", "matkapuhelin*", "gsm-nummer",
        "komórka", "kom", "tel. kom", "telefon komórkowy", "nr telefonu", "telefón", "mobilní telefon", "telefonszám", "mobilszám", "vezetékes",
        "cep", "cep no", "cep telefonu", "sabit hat", "gsm no", "mobilus", "tālrunis", "telefonas", "tālr", "tel.č", "číslo telefonu", "broj telefona", "mobitel",
        "τηλ", "τηλέφωνο", "κινητό", "φαξ", "тел", "телефон*", "моб", "моб. тел", "мобильн*", "мобільн*", "сотов*", "факс", "телеф", "тэл",
        "电话", "電話", "手机", "手機", "传真", "傳真", "联系方式", "聯絡電話", "座机", "携帯", "携帯番号", "ファックス", "ファクス", "連絡先",
        "전화", "전화번호", "휴대폰", "휴대전화", "핸드폰", "연락처", "팩스", "फोन", "मोबाइल", "दूरभाष", "هاتف", "جوال", "موبايل", "تلفن", "موبایل", "טלפון", "נייד", "โทร", "มือถือ",
        "điện thoại", "số điện thoại", "sđt", "telepon", "nomor hp", "no hp", "nohp", "telp", "nomor telepon", "simu",
    ]),
    (Word::Desk, &["office", "desk", "home", "work", "direct", "private", "business", "büro", "privat", "bureau", "domicile", "oficina", "casa", "ufficio", "kantoor", "thuis", "kontor", "praca", "dom", "ev", "iş", "раб", "дом", "办公室", "会社", "自宅", "직장"]),
    (Word::Call, &[
        "call", "called", "calling", "calls", "reach", "reached", "ring", "dial", "dialled", "dialed", "text", "texted", "answering", "contact", "message", "messages",
        "get hold of", "speak to", "phoned", "callback", "call back", "registered", "line", "extension", "recovery number", "my number", "his number", "her number",
        "their number", "new number", "our number", "anrufen", "rufen", "ruf", "erreichbar", "erreichen", "appeler", "appelez", "appelle", "rappeler", "joindre", "joignable",
        "contactez", "llamar", "llame", "llama", "llámame", "llámanos", "contactar", "ligar", "ligue", "liga", "contacte", "chiamare", "chiama", "chiamami", "chiamate",
        "contattare", "bellen", "bel", "bereikbaar", "ringa", "ring", "ringe", "nås", "soita", "soittaa", "zadzwoń", "dzwonić", "dzwoń", "zavolejte", "volejte", "hívjon",
        "hívja", "sunați", "suna", "arayın", "ara", "arayabilirsiniz", "καλέστε", "позвоните", "звоните", "звонить", "зателефонуйте", "дзвоніть", "致电", "拨打", "撥打",
        "連絡", "연락", "문의", "hubungi", "gọi", "liên hệ", "اتصل",
    ]),
    (Word::Card, &[
        "card", "cards", "cardnumber", "cardno", "card_number", "credit card", "creditcard*", "debit card", "cc", "ccn", "ccnum", "cc number", "PAN", "pan", "primary account number", "visa",
        "mastercard", "master card", "amex", "american express", "diners", "diners club", "discover card", "jcb", "unionpay", "union pay", "maestro", "cardholder",
        "kreditkarte*", "kartennummer", "karte", "kartennr", "bankkarte", "debitkarte", "ec-karte", "carte bancaire", "carte bleue", "carte de crédit", "carte de paiement",
        "carte", "numéro de carte", "cb", "tarjeta", "tarjeta de crédito", "número de tarjeta", "cartão", "cartão de crédito", "carta", "carta di credito", "carta di debito",
        "numero carta", "creditcard*", "kaartnummer", "betaalkaart", "bankkaart", "kreditkort*", "betalkort*", "kortnummer", "kortnr", "betalingskort", "kort", "luottokortti*",
        "pankkikortti*", "kortin numero", "karta", "karty", "karta kredytowa", "karta płatnicza", "numer karty", "platební karta", "kreditní karta", "číslo karty",
        "bankkártya*", "hitelkártya*", "kártyaszám", "card de credit", "kart", "kart no", "kredi kartı", "kart numarası", "banka kartı", "κάρτα", "πιστωτική κάρτα", "карта", "карты",
        "карту", "картка", "картки", "номер карты", "カード", "カード番号", "クレジットカード", "クレカ", "信用卡", "卡号", "卡號", "银行卡", "銀行卡", "借记卡", "카드", "카드번호", "신용카드",
        "कार्ड", "بطاقة", "כרטיס אשראי", "บัตรเครดิต", "thẻ tín dụng", "số thẻ", "kartu kredit",
    ]),
    (Word::Iban, &[
        "iban", "bank account", "account number", "account no", "account", "acct", "bankverbindung", "konto", "kontonummer", "kontonr", "bankkonto", "compte", "compte bancaire", "rib",
        "cuenta", "cuenta bancaria", "conta", "conta bancária", "nib", "conto", "conto corrente", "coordinate bancarie", "rekening", "rekeningnummer", "bankrekening", "banknummer",
        "rachunek", "numer rachunku", "nr konta", "tilinumero", "tili", "číslo účtu", "účet", "bankszámla", "számlaszám", "cont", "cont bancar", "hesap", "hesap no", "λογαριασμός",
        "счет", "рахунок", "账号", "账户", "帳號", "口座", "口座番号", "계좌", "계좌번호", "حساب", "الآيبان", "آيبان",
    ]),
    (Word::Ip, &[
        "ip", "ips", "ipaddr", "ipaddress", "ip-address", "ip_address", "ipv4", "ipv6", "clientip", "remoteip", "userip", "srcip", "dstip", "serverip", "hostip", "sourceip", "addr", "addrs", "address", "addresses", "adresse", "adres", "dirección", "endereço", "indirizzo", "адрес", "адреса",
        "host", "hosts", "hostname", "server", "servers", "serveur", "servidor", "dns", "nameserver", "nameservers", "resolver", "gateway", "client", "remote", "from", "peer", "router", "inet", "inet6",
        "ping", "listen", "listening", "connect", "connected", "connection", "subnet", "network", "netmask", "src", "dst", "source", "destination", "login", "node", "bind",
        "endpoint", "proxy", "ssh", "http", "https", "route", "via", "dev", "forwarded-for", "x-forwarded-for", "x-real-ip", "banned", "blocked", "сервер", "地址", "服务器", "主机", "アドレス", "サーバー", "주소", "서버",
    ]),
    (Word::Mac, &["mac", "mac address", "mac addr", "mac-adresse", "hwaddr", "hardware address", "physical address", "physische adresse", "ether", "link/ether", "bssid", "wlan", "wifi", "wi-fi", "bluetooth", "device", "lladdr", "eui"]),
    (Word::Password, &[
        "password", "passwd", "passwort", "kennwort", "passphrase", "passcode", "pwd", "login", "credentials", "contraseña", "clave", "senha", "mot de passe", "mdp", "wachtwoord", "lösenord", "passord", "adgangskode", "salasana", "hasło", "heslo", "jelszó", "parola", "şifre", "lozinka",
        "пароль", "密码", "密碼", "口令", "パスワード", "비밀번호",
    ]),
    (Word::Crypto, &[
        "wallet", "wallets", "btc", "bitcoin", "bitcoins", "eth", "ethereum", "crypto", "ltc", "litecoin", "xmr", "monero", "usdt", "usdc", "tether", "trx", "tron", "sol", "solana", "xrp",
        "ripple", "ada", "cardano", "doge", "dogecoin", "dash", "zcash", "zec", "bnb", "bch", "polkadot", "dot", "cosmos", "stellar", "xlm", "geldbörse", "portefeuille", "cartera", "carteira",
        "portafoglio", "portfel", "кошелек", "кошелёк", "钱包", "錢包", "比特币", "ウォレット", "ビットコイン", "지갑", "비트코인", "deposit address", "send to", "pay to",
    ]),
    (Word::Vat, &[
        "vat", "vat id", "vat no", "vat nr", "vat number", "vat reg no", "vat reg", "vat registration", "vat registration number", "vat identification number", "vatin", "vatnumber", "vat_id", "ust-idnr", "ust-id-nr", "ust-id",
        "ust.-id", "ustid*", "ust id", "ust idnr", "umsatzsteuer*", "uid", "uid-nummer", "mwst", "mwst-nr", "mwst-nummer", "tva", "n° tva", "no tva", "n tva", "numéro de tva", "numéro tva", "tva intracommunautaire", "tva intracom",
        "iva", "p.iva", "p. iva", "p.i", "p iva", "piva", "partita iva", "n.i.f. iva", "nif-iva", "nif iva", "número de iva", "cif", "c.i.f", "btw", "btw-nr", "btw-nummer", "btwnummer", "btw-id", "btw nr",
        "nip", "nip/vat", "nip ue", "vat ue", "moms", "momsnr", "momsnummer", "momsreg*", "moms-nr", "momsregistreringsnummer", "cvr", "cvr-nr", "se-nr", "mva", "alv", "alv-nro", "alv-numero", "alv-tunniste", "dph", "dič", "ič dph", "áfa",
        "adószám", "közösségi adószám", "cod tva", "cui", "c.u.i", "cod fiscal", "rofiscal", "αφμ", "α.φ.μ", "φπα", "ддс", "ндс", "пдв", "pdv", "pdv id", "pdv-id", "oib", "ddv", "id za ddv", "kmkr", "kmkr nr", "pvn", "pvm", "pvm kodas",
        "kmd", "ei.nr", "税号", "增值税", "增值税号", "부가세", "tax id", "tax number", "tin",
    ]),
    (Word::Dob, &[
        "dob", "d.o.b", "date of birth", "date-of-birth", "date_of_birth", "dateofbirth", "birth date", "birthdate", "birth_date", "birthday", "born", "b-day", "bday", "geburtsdatum", "geboren",
        "geb", "geburtstag", "geb.datum", "geb.-datum", "date de naissance", "né le", "née le", "né(e) le", "ne(e) le", "=né", "=née", "naissance", "date naissance", "ddn", "fecha de nacimiento",
        "fecha nacimiento", "nacimiento", "nacido", "nacida", "nací", "nació", "f. nac", "fecha nac", "f.nac", "cumpleaños", "data de nascimento", "nascimento", "nascido", "nascida", "nasceu", "data nasc", "d.n", "data di nascita", "nato",
        "nata", "nato/a", "nascita", "geboortedatum", "geboren op", "geb.dat", "data urodzenia", "urodzony", "urodzona", "urodzenia", "ur", "data ur", "födelsedatum", "född", "fødselsdato", "født", "fødselsdag",
        "syntymäaika", "syntynyt", "synt", "s.aika", "datum narození", "narozen*", "nar", "dátum narodenia", "narodený", "narodená", "születési dátum", "születési idő", "született", "szül", "data nașterii", "născut", "născută", "data nasterii",
        "doğum tarihi", "doğumlu", "doğum", "d.tarihi", "datum rođenja", "rođen", "rođena", "datum rojstva", "rojen", "rojena", "sünniaeg", "sündinud", "dzimšanas datums", "dzimis", "dzimusi", "gimimo data", "gimęs", "gimusi", "fæðingardagur", "fædd",
        "ημερομηνία γέννησης", "ημ. γέννησης", "ημ/νία γέννησης", "γεννήθηκε", "γεννημένος", "γεννημένη", "дата рождения", "родился", "родилась", "д.р", "г.р", "день рождения", "дата народження", "народився", "народилася", "дата на раждане", "роден", "родена",
        "датум рођења", "生年月日", "生まれ", "誕生日", "出生日期", "出生年月", "出生", "出生于", "生于", "生於", "生日", "생년월일", "생일", "출생", "출생일", "태어난", "जन्म तिथि", "जन्मतिथि", "जन्म", "تاريخ الميلاد", "تاریخ تولد", "מולד", "תאריך לידה",
        "วันเกิด", "ngày sinh", "sinh ngày", "sinh năm", "tanggal lahir", "tgl lahir", "tgl. lahir", "tarikh lahir", "kelahiran", "lahir",
    ]),
    (Word::Passport, &[
        "passport*", "passport no", "ppt no", "passnummer", "*passnummer", "passnr", "pass-nr", "pass nr", "passnr", "reisepass*", "*reisepass", "reisepassnummer", "passeport*", "pasaporte*", "passaporte*", "passaporto*",
        "paspoort*", "paszport*", "numer paszportu", "nr paszportu", "passnr", "pasnummer", "pasnr", "pass nummer", "passi", "passin numero", "passinumero", "passinro", "cestovní pas", "číslo pasu", "číslo cestovního pasu", "cestovný pas", "útlevél*", "útlevélszám", "pașaport*",
        "pasaport*", "putovnica", "broj putovnice", "potni list", "pasas", "paso nr", "pase", "pases nr", "vegabréf", "διαβατήριο", "διαβατηρίου", "паспорт*", "загранпаспорт*", "护照", "護照", "护照号", "护照号码", "パスポート", "パスポート番号", "旅券", "旅券番号", "여권", "여권번호",
        "पासपोर्ट", "جواز السفر", "جواز سفر", "גיליון", "דרכון", "หนังสือเดินทาง", "hộ chiếu", "paspor", "nomor paspor", "pasport",
    ]),
    (Word::License, &[
        "driver license*", "drivers license*", "driver's license*", "driver licence*", "drivers licence*", "driver's licence*", "driving licence*", "driving license*", "driver_license*", "drivers_license*", "driverslicense*", "driverlicense*",
        "driving_licence*", "driving permit", "licence no", "licence number", "license no", "license number", "DL", "DLN", "D.L", "dl#", "dl no", "dl number", "dl nr", "driver id", "operator license", "permit to drive",
        "führerschein*", "fuehrerschein*", "fahrerlaubnis*", "fs-nr", "permis de conduire", "permis", "n° permis", "permiso de conducir", "permiso de conducción", "carnet de conducir", "carné de conducir", "licencia de conducir", "licencia de conducción",
        "licencia", "carta de condução", "carteira de habilitação", "carteira de motorista", "cnh", "patente di guida", "patente", "rijbewijs*", "prawo jazdy", "prawa jazdy", "körkort*", "kørekort*", "førerkort*", "ajokortti*", "ajokortin numero", "řidičský průkaz",
        "řidičského průkazu", "číslo ŘP", "vodičský preukaz", "vodičského preukazu", "jogosítvány*", "vezetői engedély*", "permis de conducere", "permisul de conducere", "ehliyet*", "sürücü belgesi", "vozačka dozvola", "vozniško dovoljenje", "δίπλωμα οδήγησης", "άδεια οδήγησης",
        "водительское удостоверение", "водительского удостоверения", "водительские права", "в/у", "посвідчення водія", "шофьорска книжка", "свидетелство за управление", "驾照", "驾驶证", "驾驶证号", "駕照", "駕駛執照", "運転免許", "運転免許証", "運転免許証番号", "免許証", "免許証番号", "免許番号",
        "운전면허", "운전면허증", "운전면허번호", "면허번호", "ड्राइविंग लाइसेंस", "رخصة القيادة", "رخصة قيادة", "רישיון נהיגה", "ใบขับขี่", "bằng lái xe", "giấy phép lái xe", "GPLX", "SIM no", "nomor sim",
    ]),
    (Word::Plate, &[
        "license plate*", "licence plate*", "number plate*", "plate no", "plate number", "plate nr", "license tag", "tag number", "registration", "registration number", "registration no", "registration plate", "registration mark", "vehicle registration", "vehicle reg", "vehicle",
        "reg no", "reg. no", "reg number", "reg plate", "vrm", "vrn", "index mark", "plates", "rego", "car reg", "license_plate", "kennzeichen*", "*kennzeichen", "kfz", "kfz-kennzeichen", "nummernschild*", "immatriculation", "plaque d'immatriculation", "plaque", "immatriculé", "immatriculée", "n° d'immatriculation",
        "matrícula", "matriculado", "placa", "placas", "patente del auto", "matriculação", "targa", "targato", "targata", "kenteken*", "nummerplaat", "nummerplade", "registreringsnummer", "regnr", "reg.nr", "reg nr", "reg.-nr", "bilnummer", "registreringsskylt", "skiltnummer", "kjennemerke", "rekisterinumero", "rekisteritunnus", "rek.nro",
        "numer rejestracyjny", "nr rejestracyjny", "nr rej", "rejestracja", "tablica rejestracyjna", "registrační značka", "spz", "rz", "evidenčné číslo", "evč", "rendszám*", "număr de înmatriculare", "nr. înmatriculare", "plaka", "plaka no", "plakalı", "registracija", "registarska oznaka", "tablice", "registrska številka",
        "πινακίδα", "πινακίδες", "αριθμός κυκλοφορίας", "госномер", "гос. номер", "номерной знак", "номерний знак", "номерного знака", "регистрационен номер", "рег. номер", "车牌", "车牌号", "车牌号码", "車牌", "車牌號碼", "ナンバープレート", "ナンバー", "登録番号", "車両番号", "차량번호", "번호판", "차번호",
        "वाहन संख्या", "لوحة", "רכב", "ทะเบียนรถ", "biển số", "biển số xe", "plat nomor", "nopol",
    ]),
    (Word::Postal, &[
        "zip", "zip code", "zip-code", "zip_code", "zipcode", "zip+4", "postal code", "postal_code", "postalcode", "postal", "post code", "postcode", "post_code", "pin code", "pincode", "PIN", "eircode", "plz", "postleitzahl", "code postal", "code_postal", "CP", "C.P", "c.p",
        "código postal", "codigo_postal", "cód. postal", "cód postal", "CAP", "C.A.P", "codice postale", "codice di avviamento postale", "cep", "código de endereçamento postal", "kod pocztowy", "kodu pocztowego", "postnummer", "postnr", "post.nr", "postinumero", "=psč", "poštovní směrovací číslo",
        "irányítószám", "irsz", "cod poștal", "cod postal", "posta kodu", "poštanski broj", "poštna številka", "pašto kodas", "pasta indekss", "postiindeks", "sihtnumber", "póstnúmer", "ταχυδρομικός κώδικας", "ταχυδρομικό κώδικα", "τ.κ", "τκ", "почтовый индекс", "индекс", "поштовий індекс", "індекс", "пощенски код", "п.к",
        "поштански број", "邮编", "邮政编码", "郵遞區號", "邮政编号", "郵便番号", "〒", "우편번호", "पिन कोड", "الرمز البريدي", "کد پستی", "מיקוד", "รหัสไปรษณีย์", "mã bưu điện", "mã bưu chính", "kode pos", "poskod",
    ]),
    (Word::Identity, &[
        "national id", "national_id", "nationalid", "national id number", "national identity", "national identity number", "national identification number", "identity number", "identity no", "identity card", "identity card no", "identification number", "id number", "id_number", "idnumber", "id no", "id nr",
        "id card", "id-card", "government id", "citizen id", "citizen number", "personal id", "personal identification number", "personal number", "personal code", "tax id", "tax_id", "taxid", "tax identification number", "tax number", "taxpayer id", "taxpayer", "tin", "social security", "insurance number", "national number",
        "ausweisnummer", "ausweis-nr", "personalausweis*", "personalausweisnummer", "personenkennzeichen", "identifikationsnummer", "identitätsnummer", "numéro national", "numéro d'identité", "carte d'identité", "carte nationale d'identité", "cni", "numéro d'identification", "número de identificación", "número de identidad",
        "documento de identidad", "doc. identidad", "cédula", "cédula de identidad", "cédula de ciudadanía", "identificación", "número de identificação", "bilhete de identidade", "cartão de cidadão", "documento", "carta d'identità", "documento d'identità", "identiteitskaart", "identiteitsnummer", "identiteitsbewijs", "identitetsnummer", "identitetskort", "henkilökortti",
        "dowód osobisty", "nr dowodu", "numer dowodu", "občanský průkaz", "číslo op", "osobní číslo", "občiansky preukaz", "személyi igazolvány", "személyi szám", "carte de identitate", "buletin", "kimlik", "kimlik no", "kimlik numarası", "nüfus cüzdanı", "osobna iskaznica", "lična karta", "osebna izkaznica", "isikukood", "asmens kodas", "personas kods",
        "ταυτότητα", "αριθμός ταυτότητας", "удостоверение личности", "идентификационный номер", "идентификационен номер", "лична карта", "посвідчення особи", "身份证", "身分證", "身份證", "身份证号", "证件号", "证件号码", "証明書番号", "신분증", "신분증번호", "पहचान पत्र", "رقم الهوية", "الهوية", "کد ملی", "תעודת זהות", "บัตรประชาชน", "เลขประจำตัวประชาชน",
        "căn cước", "cmnd", "cccd", "nomor ktp", "ktp", "kad pengenalan",
    ]),
    (Word::Version, &[
        "version*", "ver", "release*", "rev", "revision", "build", "firmware", "driver", "kernel", "section", "sections", "sec", "chapter", "rfc", "upgrade*", "downgrade*", "since", "package*", "oid", "clause", "article", "paragraph", "appendix", "annex", "changelog", "update*", "snapshot", "standard",
        "versión", "versão", "versione", "versie", "wersja", "verze", "versio", "sürüm", "версия", "версії", "版本", "バージョン", "버전", "§", "snmp", "mib", "patch", "python", "java", "chrome", "firefox", "library", "lib", "requires", "depends", "dependency",
    ]),
    (Word::Thing, &[
        "order", "orders", "invoice", "ticket", "isbn", "issn", "ean", "gtin", "upc", "doi", "cas", "cve", "rfc", "table", "figure", "fig", "page", "pages", "pp", "part", "part no", "serial", "serial no", "commit", "size", "bytes", "blocks", "timestamp", "acn", "abn", "omb", "imei", "imsi", "iccid", "sku",
        "tracking", "reference", "ref", "id", "ids", "uuid", "guid", "lat", "latitude", "lon", "long", "longitude", "port", "pid", "sha", "sha1", "sha256", "md5", "hash", "checksum", "crc", "bug", "issue", "version", "patent", "offset", "coordinates", "tile", "score", "scored", "bestellung", "bestellnummer", "rechnung", "rechnungsnummer",
        "auftrag", "kundennummer", "artikelnummer", "seite", "seiten", "tabelle", "aktenzeichen", "commande", "facture", "réf", "référence", "tableau", "pedido", "factura", "página", "ordine", "fattura", "pagina", "bestelling", "factuur", "zamówienie", "faktura", "заказ", "счёт", "订单", "订单号", "注文番号", "주문번호",
        "total", "sum", "amount", "usd", "eur", "gbp", "price", "km", "kg", "model", "catalog", "catalogue", "lot", "batch", "case", "docket", "form", "arxiv", "pmid", "vol", "volume", "seq", "sequence", "addr", "address",
    ]),
];

/// Words that may stand between a keyword and its value. Sorted.
#[rustfmt::skip]
pub(super) const FILLERS: &[&str] = &[
    "a", "al", "also", "am", "an", "are", "at", "au", "aux", "bajo", "be", "been", "bitte", "card", "carte", "chez", "code", "con", "currently", "da",
    "das", "dat", "de", "del", "den", "der", "des", "dia", "die", "direct", "directly", "dit", "do", "document", "du", "e", "ein", "el", "els", "em",
    "er", "es", "est", "favor", "file", "for", "full", "has", "her", "here", "het", "him", "id", "ihm", "ihn", "il", "is", "ist", "its", "kod", "la",
    "lautet", "le", "me", "meg", "mi", "mich", "mig", "mij", "mir", "mit", "moi", "my", "n", "na", "nbr", "new", "no", "no'", "nomor", "nous", "now",
    "nr", "nro", "nu", "num", "number", "numbers", "numer", "numero", "nummer", "nummeret", "n°", "o", "och", "of", "old", "on", "os", "para",
    "please", "por", "record", "reg", "sie", "so", "sob", "son", "sono", "sous", "still", "ten", "the", "them", "to", "um", "un", "under", "uns",
    "unter", "us", "var", "was", "with", "you", "your", "zu", "е", "номер", "є", "№",
];

/// Fillers of scripts without spaces, and signs.
#[rustfmt::skip]
pub(super) const SIGNS: &[&str] = &[
    "号码", "號碼", "番号", "번호", "号", "號", "是", "为", "為", "：", "は", "が", "の", "も", "에", "는", "은", "이", "가", "로", "으로", "で", "に", "在", "于", "於", "也", "即", "№", "°", "º", "•", "·", "→", "「", "【", "】", "《", "（", "“", "«", "»", "、", "，", "。", "–",
];
